//! What tests of stores share.

pub mod conformance;
