//! Integration tests of the crate in one binary, because linking dominates the build time.
#![allow(clippy::unwrap_used, reason = "tests may unwrap, and so may their helpers")]

mod graft;
mod memory;
mod operations;
mod reverse;
