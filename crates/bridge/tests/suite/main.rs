//! Outside agents, with programs that stand in for them.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "tests may unwrap, and so may their helpers")]

mod codex;
