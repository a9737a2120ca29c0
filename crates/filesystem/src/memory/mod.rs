//! Files in memory.
//!
//! A [`MemoryFilesystem`] keeps its files in a persistent tree: taking a [snapshot](MemoryFilesystem::snapshot) is cloning a
//! pointer, and a snapshot is a value that can be stored as JSON. It holds files, executable files and directories; there are
//! no links, and nothing outside that a path could reach. Operations are all or nothing: one that is refused changed nothing.
//!
//! [`MemoryWorkspace`] captures and restores it in the object format that host directories use too.

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

/// Paths are joined within the default limits, and trees are walked by recursion, so neither may be wider.
fn narrowed(limits: FilesystemLimits) -> FilesystemLimits {
    let default = FilesystemLimits::default();
    FilesystemLimits {
        file_bytes: limits.file_bytes,
        path_depth: limits.path_depth.min(default.path_depth),
        segment_bytes: limits.segment_bytes.min(default.segment_bytes),
    }
}

/// The path of a name in a directory.
fn joined(directory: &str, name: &str) -> String {
    if directory.is_empty() { name.to_owned() } else { format!("{directory}/{name}") }
}
