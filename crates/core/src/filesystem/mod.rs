//! What all filesystems have in common, and the one in memory.
//!
//! The port itself is [`crate::ports::Filesystem`]. Here are the paths it takes.
//!
//! [`MemoryFilesystem`] implements the port, and [`MemoryWorkspace`] captures and restores it. A captured root is a tree in
//! git's format ([`encode_tree`]) with a [`Manifest`] of what git cannot hold, the same for every workspace.

mod diff;
mod git_names;
mod manifest;
mod memory;
mod path;
mod stored;
mod tree;

pub use diff::diff_roots;
pub use git_names::git_refuses;
pub use manifest::{Manifest, ManifestError, Refused};
pub use memory::{LoadError, MemoryFiles, MemoryFilesystem, MemoryWorkspace};
pub use path::{FilePath, InvalidPath};
pub use tree::{TreeEntry, TreeError, TreeMode, decode_tree, encode_tree, tree_object};
