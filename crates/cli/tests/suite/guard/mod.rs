//! The guard: a stand-in program and real ones report to real hooks.

mod boundaries;
mod codex;
mod command;
mod failures;
mod kills;
mod neighbours;
mod placed;
pub(crate) mod real_claude;
mod real_codex;
mod real_codex_calls;
mod settings;
pub(crate) mod stand_in;
mod windows;
