//! Shared code of the tests of stores.

pub mod conformance;
#[cfg(feature = "old-stores")]
pub mod version_1;
