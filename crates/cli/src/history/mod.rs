//! Commands that go back in a session, fork it, and apply its changes.

pub(crate) mod fork;
pub(crate) mod idle;
pub(crate) mod isolated;
pub(crate) mod neighbours;
pub(crate) mod points;
pub(crate) mod restores;
pub(crate) mod scope;
pub(crate) mod travel;
