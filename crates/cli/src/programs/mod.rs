//! Commands for other programs: guards of coding agents, and the Model Context Protocol.

pub(crate) mod guard;
#[cfg(feature = "mcp")]
pub(crate) mod mcp;
