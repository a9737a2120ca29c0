//! The integration tests of the crate, in one binary.
#![allow(clippy::unwrap_used, reason = "a test that cannot continue fails")]

mod parity;
