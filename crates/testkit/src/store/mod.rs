//! Shared code of the tests of stores.

pub mod conformance;
