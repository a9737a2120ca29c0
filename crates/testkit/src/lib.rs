//! What tests share: samples and conformance suites. For development only.
//!
//! - [`sample`] makes ids, records and whole journals, the same for the same seed;
//! - [`store::conformance`] is the suite that every store passes;
//! - [`filesystem::conformance`] is the suite that every filesystem and every workspace passes;
//! - [`tool::conformance`] is the suite that every way of calling tools passes;
//! - `crash`, with the feature of that name, kills a process at a crash point;
//! - [`fold`] compares views of journals;
//! - [`source`] finds circles between the modules of a crate;
//! - [`block_on`] runs a future to its end where there is no runtime.
//!
//! This crate depends on pure crates alone, and is used from `tests/` directories and from `bench/`, never by what users
//! run. Being test code, it panics where something does not hold, with the reason.

#[cfg(feature = "crash")]
pub mod crash;
pub mod filesystem;
pub mod fold;
pub mod sample;
pub mod source;
pub mod store;
pub mod tool;

pub use pollster::block_on;
