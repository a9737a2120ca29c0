//! Samples and conformance suites for tests. For development only.
//!
//! - [`sample`] generates ids, records and whole journals, the same for the same seed;
//! - [`filesystem::conformance`] is the suite that every filesystem and every workspace passes;
//! - [`tool`] has tools whose arguments say what they do;
//! - [`program`] finds real programs of others, and scripts models for them;
//! - [`request_form`] checks requests against the published forms of providers;
//! - [`postgres`] starts a PostgreSQL server;
//! - [`fold`] compares views of journals;
//! - [`mcp`] is a client of MCP over HTTP, and [`api`] one of the server;
//! - [`block_on`] runs a future to its end without an async runtime.
//!
//! This crate depends only on pure crates, and is used by `tests/` directories and `bench/`, never by
//! programs of users. It is test code: a failed check panics with the reason.

pub mod api;
pub mod filesystem;
pub mod fold;
pub mod mcp;
#[cfg(unix)]
pub mod postgres;
pub mod program;
pub mod request_form;
pub mod sample;
pub mod tool;

pub use pollster::block_on;
