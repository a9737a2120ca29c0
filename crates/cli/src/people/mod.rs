//! Commands with which people decide about calls and talk to a session.

pub(crate) mod compact;
pub(crate) mod decide;
pub(crate) mod in_place;
