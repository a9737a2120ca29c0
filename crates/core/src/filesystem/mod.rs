//! What all filesystems have in common, and the one in memory.
//!
//! The port itself is [`crate::ports::Filesystem`]. Here are the paths it takes, and what is built on its few operations in the
//! same way for every implementation: reading text in windows, editing, globbing and searching ([`FileOperations`]).
//!
//! [`MemoryFilesystem`] implements the port, and [`MemoryWorkspace`] captures and restores it. How a captured root is
//! written is the same for every workspace ([`format`](mod@format)).

mod edit;
pub mod format;
mod grep;
mod memory;
mod operations;
mod path;
mod pattern;
mod search;
mod text;

pub use edit::{Edited, Occurrence};
pub use grep::{BinaryFiles, Grep, GrepMatch, GrepOptions};
pub use memory::{LoadError, MemoryFiles, MemoryFilesystem, MemoryWorkspace};
pub use operations::FileOperations;
pub use path::{FilePath, InvalidPath};
pub use search::{Glob, GlobMatch, SearchLimits};
pub use text::{LineWindow, TextWindow};
