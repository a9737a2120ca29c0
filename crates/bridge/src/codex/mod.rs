//! Codex, over its app-server: one line of JSON for each message, on standard input and output.
//!
//! Its hooks run only if their hashes are stored in its settings ([`trust()`]), and its conversations are cut off only between
//! turns ([`ForkPlan`]). The app-server is asked for both, and drives Codex as an engine.
//!
//! Messages are parsed without IO, and everything in them is input from outside: fields may be missing, unknown or of another
//! type. [`AppServer`] owns the process, which ends with it.
//!
//! The app-server is part of the `codex` program. Its protocol is not versioned, so an answer that lacks what is needed is an
//! error that names the missing field, and everything else is ignored.

#[cfg(feature = "engines")]
mod engine;
mod fork;
mod hooks;
mod server;
mod thread;
mod trust;
mod wire;

use crate::program::Program;

#[cfg(feature = "engines")]
pub(crate) use engine::CodexRun;
pub use fork::ForkPlan;
pub use hooks::{ListedHook, TrustStatus};
pub use server::{AppServer, AppServerSpec};
pub use thread::{Cut, ThreadId, TurnId};
pub use trust::{HookTrust, HookTrustError, distrust, list_trust, trust};
pub use wire::{RequestId, ServerMessage};

/// The name for people.
pub(crate) const TITLE: &str = Program::Codex.title();
