//! Commands that run an agent.

pub(crate) mod chat;
pub(crate) mod drive;
pub(crate) mod driving;
pub(crate) mod ending;
pub(crate) mod live;
pub(crate) mod quickstart;
pub(crate) mod resume;
