//! Commands for other programs: guards of coding agents, the Model Context Protocol, and the server over HTTP.

pub(crate) mod guard;
#[cfg(feature = "mcp")]
mod listen;
#[cfg(feature = "mcp")]
pub(crate) mod mcp;
#[cfg(feature = "server")]
pub(crate) mod server;
