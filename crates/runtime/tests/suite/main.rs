//! Tests of the runtime, in one binary.
#![allow(clippy::unwrap_used, reason = "tests may unwrap, and so may their helpers")]

mod disk;
mod files;
mod harness;
mod processes;
mod runner;
