//! The MCP server, as real clients see it: pipes, and processes that are killed.

mod addresses;
mod approvals;
mod client;
#[cfg(feature = "crash-points")]
mod crashes;
mod gone;
mod history;
mod hostile;
mod http;
mod http_client;
mod http_wire;
mod identity;
mod independent;
mod kills;
mod protocol;
mod questions;
mod servers;
mod settings;
mod windows;
