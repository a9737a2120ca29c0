//! Tests of all stores.
#![allow(clippy::unwrap_used, reason = "a test that cannot continue fails")]

mod broken;
mod broken_admin;
mod conformance;
mod memory;
#[cfg(all(unix, feature = "postgres"))]
mod postgres;
mod sqlite;
