//! Commands with which people decide about calls and talk to a session.

pub(crate) mod compact;
pub(crate) mod decide;
pub(crate) mod in_place;
pub(crate) mod inbox;
pub(crate) mod keyboard;
pub(crate) mod name;
pub(crate) mod picker;
pub(crate) mod tag;
