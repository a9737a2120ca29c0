//! Files, as tools see them.
//!
//! A [`Filesystem`] is a tree of files below one root. Paths are relative, plain and confined ([`FilePath`]);
//! access outside of the root, by `..`, by an absolute path or through a symbolic link, is refused. It is
//! synchronous: callers that must not block use another thread. Reading text in windows, editing, globbing
//! and searching are built on these operations and are the same for every implementation; see the crate
//! `backstitch-filesystem`.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::FilePath;
use crate::time::Timestamp;

/// A tree of files below one root.
pub trait Filesystem: Send + Sync + fmt::Debug {
    /// Returns whether writes are allowed.
    fn access(&self) -> Access;

    /// Returns the size limits.
    fn limits(&self) -> FilesystemLimits;

    /// Returns the metadata of a path. A symbolic link is not followed.
    fn stat(&self, path: &FilePath) -> Result<Stat, FilesystemError>;

    /// Reads a file. A symbolic link is followed only inside of the root.
    fn read_bytes(&self, path: &FilePath) -> Result<Vec<u8>, FilesystemError>;

    /// Writes a file, and creates its parent directories.
    fn write_bytes(&self, path: &FilePath, bytes: &[u8], mode: WriteMode) -> Result<(), FilesystemError>;

    /// Lists a directory, ordered by name.
    fn list(&self, path: &FilePath) -> Result<Vec<DirectoryEntry>, FilesystemError>;

    /// Deletes a file, a link, or a directory.
    fn delete(&self, path: &FilePath, recursion: Recursion) -> Result<(), FilesystemError>;

    /// Creates a directory and its parents. An existing one is left unchanged.
    fn make_directory(&self, path: &FilePath) -> Result<(), FilesystemError>;

    /// Moves a file or a directory. The new path must not exist.
    fn rename(&self, from: &FilePath, to: &FilePath) -> Result<(), FilesystemError>;
}

/// Whether files may be changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// Files may be read and changed.
    ReadWrite,
    /// Files may only be read.
    ReadOnly,
}

/// Treatment of an existing file.
// Models read these texts in the schema of the tool that writes files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WriteMode {
    /// Fails if the file exists.
    Create,
    /// Replaces the file.
    Overwrite,
    /// Adds to the end of the file.
    Append,
}

/// Whether a directory is deleted with its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Recursion {
    /// The directory must be empty.
    None,
    /// The directory is deleted with all of its content.
    All,
}

/// Size limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FilesystemLimits {
    /// Largest size of a file for reads and writes, in bytes.
    pub file_bytes: u64,
    /// Largest number of segments of a path.
    pub path_depth: usize,
    /// Largest size of a segment, in bytes.
    pub segment_bytes: usize,
}

impl Default for FilesystemLimits {
    fn default() -> Self {
        Self { file_bytes: 32 * 1024 * 1024, path_depth: 64, segment_bytes: 255 }
    }
}

/// Kind of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FileKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Link,
    /// A socket, a pipe or a device. It is listed, but cannot be read or changed.
    Other,
}

/// Metadata of a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stat {
    /// What it is.
    pub kind: FileKind,
    /// Size of a file.
    pub bytes: u64,
    /// Whether a file may be executed.
    pub executable: bool,
    /// Time of the last change, if it is known.
    pub modified: Option<Timestamp>,
}

/// A name in a directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirectoryEntry {
    /// Name of the entry. Bytes that are not UTF-8 are shown as replacement characters, and such a file has
    /// no path.
    pub name: String,
    /// What it is.
    pub kind: FileKind,
    /// Size of a file.
    pub bytes: u64,
}

/// A filesystem refused an operation, or failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FilesystemError {
    /// The path does not exist.
    #[error("{path}: there is no such file or directory")]
    NotFound {
        /// The path.
        path: String,
    },
    /// The path exists already.
    #[error("{path}: it exists already")]
    Exists {
        /// The path.
        path: String,
    },
    /// The path is a directory, and a file was expected.
    #[error("{path}: it is a directory")]
    IsDirectory {
        /// The path.
        path: String,
    },
    /// The path, or one of its parents, is not a directory.
    #[error("{path}: it is not a directory")]
    NotDirectory {
        /// The path.
        path: String,
    },
    /// The directory is not empty.
    #[error("{path}: the directory is not empty; delete it with all that it holds, or empty it first")]
    NotEmpty {
        /// The path.
        path: String,
    },
    /// The path is outside of the root, or must not be accessed.
    #[error("{path}: it is outside of the workspace")]
    Outside {
        /// The path.
        path: String,
    },
    /// The path is reserved for files of the runtime.
    #[error("{path}: it is kept for Backstitch's own files")]
    Reserved {
        /// The path.
        path: String,
    },
    /// The path belongs to the files of a git repository itself.
    #[error("{path}: it belongs to git, which runs programs that these files name")]
    Repository {
        /// The path.
        path: String,
    },
    /// The path is neither a file nor a directory.
    #[error("{path}: it is neither a file nor a directory")]
    Special {
        /// The path.
        path: String,
    },
    /// The call that the files belong to has ended.
    #[error("{path}: the call has ended")]
    Revoked {
        /// The path.
        path: String,
    },
    /// The filesystem is read-only.
    #[error("{path}: the workspace is read-only")]
    ReadOnly {
        /// The path.
        path: String,
    },
    /// The file is too large.
    #[error("{path}: {bytes} bytes are more than the limit of {limit}")]
    TooLarge {
        /// The path.
        path: String,
        /// Size that the file has or would have.
        bytes: u64,
        /// Largest size allowed.
        limit: u64,
    },
    /// The path is invalid.
    #[error(transparent)]
    InvalidPath(#[from] super::InvalidPath),
    /// The file is not UTF-8.
    #[error("{path}: it is not UTF-8 text; read it as bytes")]
    NotText {
        /// The path.
        path: String,
    },
    /// An edit does not fit the file.
    #[error("{path}: {reason}")]
    Edit {
        /// The path.
        path: String,
        /// The problem, and how to fix it.
        reason: String,
    },
    /// A pattern cannot be used.
    #[error("the pattern {pattern:?} cannot be used: {reason}")]
    Pattern {
        /// The pattern.
        pattern: String,
        /// Reason for the refusal.
        reason: String,
    },
    /// The layer below failed.
    #[error("{path}: {source}")]
    Io {
        /// The path.
        path: String,
        /// Error of the system.
        #[source]
        source: std::io::Error,
    },
}
