//! The MCP server, as real clients see it: pipes, and processes that are killed.

mod approvals;
mod client;
#[cfg(feature = "crash-points")]
mod crashes;
mod gone;
mod history;
mod identity;
mod independent;
mod kills;
mod protocol;
mod servers;
