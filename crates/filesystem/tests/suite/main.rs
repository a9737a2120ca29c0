//! The integration tests of the crate, in one binary: linking is what takes the time.
#![allow(clippy::unwrap_used, reason = "tests may unwrap, and so may their helpers")]

mod memory;
mod operations;
