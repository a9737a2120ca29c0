//! The Agent Client Protocol: agents of Backstitch in editors such as Zed and Neovim.
//!
//! The [`EditorServer`] speaks the protocol over standard input and output. A conversation of an editor is an ordinary
//! session: it is durable, it can be loaded again after a kill, and every command of Backstitch shows it. What the protocol
//! calls a permission is an approval: the editor is one more place where a person decides. An editor that is silent leaves the call
//! waiting, and so does one that is gone.
//!
//! The program that runs the server implements [`EditorHost`]: it opens stores, builds agents, and knows what the user trusts. No
//! type of the SDK is part of this interface.

mod calls;
mod content;
mod diffs;
mod error;
mod history;
mod host;
mod lines;
mod modes;
mod questions;
mod replay;
mod rewind;
mod server;
mod servers;
mod session;
mod turn;
mod updates;

pub use host::{
    AgentRequest, DecidedBy, EditorHost, HostError, HostFuture, ListedSession, OfferedServer,
    PreparedSession, ServerPlace, SessionAgent,
};
pub use server::{EditorServer, ServeError};
