//! Codex, over its app-server: one line of JSON for each message, on standard input and output.
//!
//! Messages are parsed without IO, and everything in them is input from outside: fields may be missing, unknown or of another
//! type. [`AppServer`] owns the process, which ends with it.
//!
//! The app-server is part of the `codex` program. Its protocol is not versioned, so an answer that lacks what is needed is an
//! error that names the missing field, and everything else is ignored.

mod engine;
mod hooks;
mod server;
mod thread;
mod wire;

pub(crate) use engine::Codex;
pub use hooks::{ListedHook, TrustStatus};
pub use server::{AppServer, AppServerSpec};
pub use thread::{Cut, ThreadId, TurnId};
pub use wire::{RequestId, ServerMessage};

/// The name for people.
pub(crate) const TITLE: &str = "Codex";
