//! The integration tests of the crate, in one binary: the server as clients see it, without the process of a command.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "tests may unwrap, and so may their helpers")]

mod places;
mod protocol;
mod server;
mod wire;
