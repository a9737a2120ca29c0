//! What all filesystems have in common, and the one in memory.
//!
//! The port itself is [`crate::ports::Filesystem`]. Here are the paths it takes, and what is built on its few operations in the
//! same way for every implementation: reading text in windows, editing, globbing and searching ([`FileOperations`]).
//!
//! [`MemoryFilesystem`] implements the port, and [`MemoryWorkspace`] captures and restores it. A captured root is a tree in
//! git's format ([`encode_tree`]) with a [`Manifest`] of what git cannot hold, the same for every workspace.

mod diff;
mod edit;
mod git_names;
mod grep;
mod manifest;
mod memory;
mod operations;
mod path;
mod pattern;
mod search;
mod stored;
mod text;
mod tree;

pub use diff::diff_roots;
pub use edit::{Edited, Occurrence};
pub use git_names::git_refuses;
pub use grep::{BinaryFiles, Grep, GrepMatch, GrepOptions};
pub use manifest::{Manifest, ManifestError, Refused};
pub use memory::{LoadError, MemoryFiles, MemoryFilesystem, MemoryWorkspace};
pub use operations::FileOperations;
pub use path::{FilePath, InvalidPath};
pub use search::{Glob, GlobMatch, SearchLimits};
pub use text::{LineWindow, TextWindow};
pub use tree::{TreeEntry, TreeError, TreeMode, decode_tree, encode_tree, tree_object};
