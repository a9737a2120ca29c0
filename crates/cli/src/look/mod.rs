//! Commands that show sessions, and change nothing.

pub(crate) mod blame;
mod call;
pub(crate) mod conversations;
pub(crate) mod diff;
pub(crate) mod list;
pub(crate) mod log;
pub(crate) mod query;
pub(crate) mod request;
pub(crate) mod show;
pub(crate) mod stats;
pub(crate) mod table;
pub(crate) mod target;
pub(crate) mod tool_result;
pub(crate) mod turns;
pub(crate) mod waiting;
