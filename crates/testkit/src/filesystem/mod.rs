//! What tests of filesystems and workspaces share.
//!
//! [`conformance`] is the suite that every implementation passes. [`tree`] has plain trees of files to compare with, and
//! [`model`] a plain filesystem, so simple that it can be seen to be right.

pub mod conformance;
pub mod model;
mod subject;
pub mod tree;

pub use subject::{Factory, Setup, StoredObjects, Subject};
