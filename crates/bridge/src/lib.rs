//! Claude Code and Codex: what they write is read here, and they do the work of agents.
//!
//! - Formats: the events of their [`hooks`], their [`transcript`]s and their [`settings`]. The guard records their work with
//!   these, and the engines read the same.
//! - The app-server of [`codex`], which knows the hashes of hooks and forks conversations.
//! - Engines, with the feature `engines`. The port is in the runtime (`Engine`); this crate has an adapter for each program,
//!   in a folder of its own, and what they share: finding a program and its version, its process and its lines, and the
//!   socket on which the tools of the agent are served to it.
//!
//! The programs change often. Their output is input from outside: fields and events that are not known are ignored, a
//! line that cannot be understood is a typed error, and nothing is trusted to be small.

#![cfg(unix)]

#[cfg(feature = "engines")]
mod claude_code;
pub mod codex;
#[cfg(feature = "engines")]
mod engines;
mod fields;
pub mod hooks;
#[cfg(feature = "engines")]
mod installed;
mod lines;
mod messages;
#[cfg_attr(not(feature = "engines"), expect(dead_code, reason = "engines use more of it than the guard"))]
mod process;
mod program;
#[cfg(feature = "engines")]
mod relay;
pub mod settings;
pub mod transcript;

#[cfg(feature = "engines")]
pub use engines::InstalledEngines;
#[cfg(feature = "engines")]
pub use installed::{Installation, installations};
pub use process::ENGINE_VARIABLE;
pub use program::Program;
#[cfg(feature = "engines")]
pub use relay::{RelayCommand, relay};
