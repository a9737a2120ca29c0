//! Files, as tools see them.
//!
//! A [`Filesystem`] is a tree of files below one root. Paths are relative, plain and confined ([`FilePath`]); whatever would
//! leave the root, by `..`, by an absolute path or through a symbolic link, is refused. It is synchronous: who must not
//! block calls it elsewhere. Reading text in windows, editing, globbing and searching are built on these few operations and
//! are the same for every implementation; see [`crate::filesystem`].

use std::fmt;

use serde::{Deserialize, Serialize};

use super::FilePath;
use crate::time::Timestamp;

/// A tree of files below one root.
pub trait Filesystem: Send + Sync + fmt::Debug {
    /// Whether it may be written to.
    fn access(&self) -> Access;

    /// What it allows.
    fn limits(&self) -> FilesystemLimits;

    /// What is at a path. A symbolic link is not followed.
    fn stat(&self, path: &FilePath) -> Result<Stat, FilesystemError>;

    /// The content of a file. A symbolic link is followed inside of the root only.
    fn read_bytes(&self, path: &FilePath) -> Result<Vec<u8>, FilesystemError>;

    /// Writes a file, making the directories above it.
    fn write_bytes(&self, path: &FilePath, bytes: &[u8], mode: WriteMode) -> Result<(), FilesystemError>;

    /// What a directory holds, by name.
    fn list(&self, path: &FilePath) -> Result<Vec<DirectoryEntry>, FilesystemError>;

    /// Deletes a file, a link, or a directory.
    fn delete(&self, path: &FilePath, recursion: Recursion) -> Result<(), FilesystemError>;

    /// Makes a directory and those above it. One that is there already is left alone.
    fn make_directory(&self, path: &FilePath) -> Result<(), FilesystemError>;

    /// Moves a file or a directory. What is at the new path must not exist.
    fn rename(&self, from: &FilePath, to: &FilePath) -> Result<(), FilesystemError>;
}

/// Whether files may be changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// They may.
    ReadWrite,
    /// They may only be read.
    ReadOnly,
}

/// What a write does to a file that is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WriteMode {
    /// There must be none.
    Create,
    /// It is replaced.
    Overwrite,
    /// It grows.
    Append,
}

/// Whether a directory is deleted with what it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Recursion {
    /// It must be empty.
    None,
    /// With all that it holds.
    All,
}

/// How large things may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FilesystemLimits {
    /// The most bytes that a file may have to be read or written.
    pub file_bytes: u64,
    /// The most segments of a path.
    pub path_depth: usize,
    /// The most bytes of a segment.
    pub segment_bytes: usize,
}

impl Default for FilesystemLimits {
    fn default() -> Self {
        Self { file_bytes: 32 * 1024 * 1024, path_depth: 64, segment_bytes: 255 }
    }
}

/// What kind of thing is at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Link,
    /// A socket, a pipe, a device: listed, and otherwise left alone.
    Other,
}

/// What is known of a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stat {
    /// What it is.
    pub kind: FileKind,
    /// How many bytes a file has.
    pub bytes: u64,
    /// Whether a file may be executed.
    pub executable: bool,
    /// When it was last changed, where that is known.
    pub modified: Option<Timestamp>,
}

/// A name in a directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirectoryEntry {
    /// The name. Bytes that are no text are shown as replacement characters, and such a file cannot be named by a path.
    pub name: String,
    /// What it is.
    pub kind: FileKind,
    /// How many bytes a file has.
    pub bytes: u64,
}

/// A filesystem refused or failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FilesystemError {
    /// There is nothing at the path.
    #[error("{path}: there is no such file or directory")]
    NotFound {
        /// The path.
        path: String,
    },
    /// There is something at the path already.
    #[error("{path}: it exists already")]
    Exists {
        /// The path.
        path: String,
    },
    /// The path is a directory, and a file was wanted.
    #[error("{path}: it is a directory")]
    IsDirectory {
        /// The path.
        path: String,
    },
    /// The path, or something above it, is no directory.
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
    /// The path leads out of the root, or to what must not be touched.
    #[error("{path}: it is outside of the workspace")]
    Outside {
        /// The path.
        path: String,
    },
    /// The path is kept for the runtime's own files.
    #[error("{path}: it is kept for Backstitch's own files")]
    Reserved {
        /// The path.
        path: String,
    },
    /// The path is neither a file nor a directory.
    #[error("{path}: it is neither a file nor a directory")]
    Special {
        /// The path.
        path: String,
    },
    /// The call that the files were given to has ended.
    #[error("{path}: the call has ended")]
    Revoked {
        /// The path.
        path: String,
    },
    /// The filesystem may only be read.
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
        /// How large it is or would be.
        bytes: u64,
        /// How large it may be.
        limit: u64,
    },
    /// The path is no path.
    #[error(transparent)]
    InvalidPath(#[from] super::InvalidPath),
    /// The file is no text.
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
        /// What does not fit, and what to do.
        reason: String,
    },
    /// A pattern cannot be used.
    #[error("the pattern {pattern:?} cannot be used: {reason}")]
    Pattern {
        /// The pattern.
        pattern: String,
        /// Why not.
        reason: String,
    },
    /// What is below failed.
    #[error("{path}: {source}")]
    Io {
        /// The path.
        path: String,
        /// What happened.
        #[source]
        source: std::io::Error,
    },
}
