//! Outside agents, with programs that stand in for them.
#![cfg(unix)]

mod codex;
