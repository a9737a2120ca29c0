//! What all filesystems have in common, and the one in memory.
//!
//! The port itself is [`crate::ports::Filesystem`]. Here are the paths it takes, and what is built on its few operations in the
//! same way for every implementation.

mod path;

pub use path::{FilePath, InvalidPath};
