//! The Model Context Protocol (MCP), on the official SDK.
//!
//! [`ToolServer`] offers the tools of a session, and its history, to any MCP client. Each call runs through the tool
//! runner: it is journaled, approved where that is needed, and rolled back if it fails.
//!
//! [`McpServer`] is the other direction: a program or an address that serves tools, for agents.
//!
//! No type of the SDK is in a public signature, and no other crate names it.

#[cfg(unix)]
mod client;
mod server;

#[cfg(unix)]
pub use client::{
    AddressSpec, ClientError, Hints, McpServer, PinnedTool, ProgramSpec, ServerPlace, ServerPrompt,
    ServerSpec, ToolListChange, ToolListing,
};
pub use server::{
    AccessRefusal, AccessToken, ApprovalBy, ApprovalSettings, HostError, HostFuture, HttpAccess,
    InvalidToken, OpenCalls, ServeError, ServerHost, StoredSession, ToolOffer, ToolServer,
};
