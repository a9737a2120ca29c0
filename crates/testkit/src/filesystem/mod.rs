//! Shared code of the tests of filesystems and workspaces.
//!
//! [`conformance`] is the suite that every implementation passes. [`tree`] has plain trees of files to
//! compare with, and [`model`] a filesystem that is simple enough to be obviously correct.

pub mod conformance;
pub mod model;
mod subject;
pub mod tree;

pub use subject::{Factory, Setup, StoredObjects, Subject};
