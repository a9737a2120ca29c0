//! Commands about a whole store: check, copy, export, erase.

pub(crate) mod erase;
pub(crate) mod export;
pub(crate) mod maintain;
pub(crate) mod moving;
pub(crate) mod size;
