//! Commands for other programs: guards of coding agents, editors, the Model Context Protocol, and the server over HTTP.

#[cfg(feature = "acp")]
pub(crate) mod acp;
pub(crate) mod guard;
#[cfg(feature = "mcp")]
mod listen;
#[cfg(feature = "mcp")]
pub(crate) mod mcp;
#[cfg(feature = "server")]
pub(crate) mod server;
