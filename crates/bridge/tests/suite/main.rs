//! The integration tests of the crate, in one binary: Codex' app-server as a stand-in program, and the same calls through every
//! caller of tools.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "tests may unwrap, and so may their helpers")]

mod codex;
mod parity;
