//! The integration tests of the crate, in one binary: the server as clients see it over HTTP, without the process of a command.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "tests may unwrap, and so may their helpers")]

mod access;
mod changing;
mod described;
mod following;
mod limited;
mod prometheus;
mod reading;
mod stage;
