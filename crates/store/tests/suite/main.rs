//! The tests of all stores.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod broken;
mod memory;
mod sqlite;
