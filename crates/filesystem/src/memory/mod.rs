//! Files in memory.
//!
//! A [`MemoryFilesystem`] keeps its files in a persistent tree: a [snapshot](MemoryFilesystem::snapshot) is a
//! clone of a pointer, and a value that can be stored as JSON. It contains files, executable files and
//! directories; there are no links, and nothing outside that a path could reach. Operations are atomic: a
//! refused one has changed nothing.
//!
//! [`MemoryWorkspace`] captures and restores it in the object format that host directories share.

mod capture;
mod files;
mod filesystem;
mod node;
mod port;
mod restore;
mod snapshot;
mod stored;
mod workspace;

pub use files::MemoryFiles;
pub use filesystem::MemoryFilesystem;
pub use stored::LoadError;
pub use workspace::MemoryWorkspace;

use backstitch_core::ports::FilesystemLimits;

/// Paths are joined within the default limits, and trees are walked by recursion, so neither limit may be
/// raised.
fn narrowed(limits: FilesystemLimits) -> FilesystemLimits {
    let default = FilesystemLimits::default();
    FilesystemLimits {
        file_bytes: limits.file_bytes,
        path_depth: limits.path_depth.min(default.path_depth),
        segment_bytes: limits.segment_bytes.min(default.segment_bytes),
    }
}

/// Joins a directory and a name to a path.
fn joined(directory: &str, name: &str) -> String {
    if directory.is_empty() { name.to_owned() } else { format!("{directory}/{name}") }
}
