//! Files of Backstitch, without IO.
//!
//! The port is [`backstitch_core::ports::Filesystem`]. This crate contains everything that works the same
//! over all its implementations, and the implementation in memory:
//!
//! - [`FileOperations`]: reading text in windows, editing, globbing and searching;
//! - [`MemoryFilesystem`], and [`MemoryWorkspace`], which captures and restores it;
//! - [`format`](mod@format): the stored form of captured files, which host directories share.

mod edit;
pub mod format;
mod grep;
mod memory;
mod operations;
mod pattern;
mod search;
mod text;

pub use edit::{EditReport, EditTarget};
pub use grep::{BinaryFiles, Grep, GrepMatch, GrepOptions};
pub use memory::{LoadError, MemoryFiles, MemoryFilesystem, MemoryWorkspace};
pub use operations::FileOperations;
pub use search::{Glob, GlobMatch, SearchLimits};
pub use text::{LineWindow, TextWindow};

pub use backstitch_core::ports::{FilePath, InvalidPath};
