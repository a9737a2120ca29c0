//! The client: tools of MCP servers in agents.
//!
//! An [`McpServer`] is a program that is started when it is first needed, in the sandbox of the agent, or a server over
//! HTTP. It serves all calls of its tools. Its list of tools is read once and then pinned: an agent that is resumed has the same tools, and
//! a call of one that has changed since fails. A server that dies, or whose call is stopped, is started again for the
//! next call.

mod address;
mod change;
mod connection;
mod content;
mod convert;
mod environment;
mod error;
mod incoming;
mod lines;
mod listing;
mod pinned;
mod progress;
mod questions;
mod remembered;
mod server;
mod spec;
mod stderr;
mod stream;

pub use change::ToolListChange;
pub use content::ServerPrompt;
pub use error::ClientError;
pub use listing::ToolListing;
pub use pinned::{Hints, PinnedTool};
pub use server::McpServer;
pub use spec::{AddressSpec, ProgramSpec, ServerPlace, ServerSpec};
