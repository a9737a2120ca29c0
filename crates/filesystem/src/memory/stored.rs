//! JSON form of files in memory, so that they survive the process.
//!
//! ```json
//! {"v":1,
//!  "files":[{"path":"a.txt","text":"hello\n"},{"path":"run","base64":"/w==","executable":true}],
//!  "empty_directories":["build"]}
//! ```
//!
//! Content is text if it is UTF-8, and base64 otherwise. Directories with entries are implied. Reading
//! enforces limits, and refuses entries that cannot exist together.

use std::sync::Arc;

use backstitch_core::json::{JsonLimits, LimitExceeded};
use backstitch_core::ports::FilesystemLimits;
use backstitch_core::time::Timestamp;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::MemoryFiles;
use super::node::{File, FileNode, Lookup};
use crate::format::version_of;
use crate::{FilePath, InvalidPath};

const VERSION: u64 = 1;

/// The bytes are not valid files.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The JSON is too long or nests too deeply.
    #[error(transparent)]
    Limit(#[from] LimitExceeded),
    /// The JSON has the wrong shape.
    #[error("the files cannot be decoded")]
    Json(#[source] serde_json::Error),
    /// The version is unknown.
    #[error("the version of the files is {version}, but only {VERSION} is supported")]
    Version {
        /// Version number in the JSON.
        version: u64,
    },
    /// A path is invalid or exceeds the limits.
    #[error(transparent)]
    Path(#[from] InvalidPath),
    /// A file has neither text nor base64, or both, or the base64 is invalid.
    #[error("{path}: the file has no valid content")]
    Content {
        /// Path of the file.
        path: String,
    },
    /// A file is too large.
    #[error("{path}: {bytes} bytes are more than the limit of {limit}")]
    TooLarge {
        /// Path of the file.
        path: String,
        /// Actual size.
        bytes: u64,
        /// Maximum size.
        limit: u64,
    },
    /// The path is in use already, or lies below a file.
    #[error("{path}: the path is already in use, or lies below a file")]
    Taken {
        /// The conflicting path.
        path: String,
    },
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredMemoryFiles {
    v: u64,
    files: Vec<StoredFile>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    empty_directories: Vec<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredFile {
    path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    base64: Option<String>,
    #[serde(default, skip_serializing_if = "is_false")]
    executable: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    modified: Option<Timestamp>,
}

fn is_false(value: &bool) -> bool {
    !value
}

impl MemoryFiles {
    /// Encodes the files as JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string(&StoredMemoryFiles::from(self))
            .expect("invariant: strings and numbers encode as JSON")
    }

    /// Loads files from JSON, within the default limits.
    pub fn from_json(bytes: &[u8]) -> Result<Self, LoadError> {
        Self::from_json_within(bytes, JsonLimits::default(), FilesystemLimits::default())
    }

    /// Loads files from JSON, within limits on the text and on each file.
    pub fn from_json_within(
        bytes: &[u8],
        json: JsonLimits,
        limits: FilesystemLimits,
    ) -> Result<Self, LoadError> {
        json.check(bytes)?;
        let version = version_of(bytes).map_err(LoadError::Json)?;
        if version != VERSION {
            return Err(LoadError::Version { version });
        }
        let stored: StoredMemoryFiles = serde_json::from_slice(bytes).map_err(LoadError::Json)?;
        stored.load(super::narrowed(limits))
    }
}

impl From<&MemoryFiles> for StoredMemoryFiles {
    fn from(files: &MemoryFiles) -> Self {
        let mut stored = Self { v: VERSION, files: Vec::new(), empty_directories: Vec::new() };
        for (path, node) in files.leaves() {
            match node {
                FileNode::Directory(_) => stored.empty_directories.push(path),
                FileNode::File(file) => stored.files.push(StoredFile::new(path, &file)),
            }
        }
        stored
    }
}

impl StoredFile {
    fn new(path: String, file: &File) -> Self {
        let text = str::from_utf8(&file.bytes).ok().map(str::to_owned);
        let base64 = text.is_none().then(|| STANDARD.encode(&file.bytes));
        Self { path, text, base64, executable: file.executable, modified: file.modified }
    }

    fn bytes(self) -> Result<Arc<[u8]>, LoadError> {
        let bytes = match (self.text, self.base64) {
            (Some(text), None) => Some(text.into_bytes()),
            (None, Some(base64)) => STANDARD.decode(base64).ok(),
            (None, None) | (Some(_), Some(_)) => None,
        };
        bytes.map(Arc::from).ok_or(LoadError::Content { path: self.path })
    }
}

impl StoredMemoryFiles {
    fn load(self, limits: FilesystemLimits) -> Result<MemoryFiles, LoadError> {
        if self.v != VERSION {
            return Err(LoadError::Version { version: self.v });
        }
        let mut files = MemoryFiles::new();
        for stored in self.files {
            let path = FilePath::within(&stored.path, limits)?;
            let (executable, modified) = (stored.executable, stored.modified);
            let bytes = stored.bytes()?;
            if bytes.len() as u64 > limits.file_bytes {
                let (bytes, limit) = (bytes.len() as u64, limits.file_bytes);
                return Err(LoadError::TooLarge { path: path.to_string(), bytes, limit });
            }
            place(&mut files, &path, FileNode::File(Arc::new(File::new(bytes, executable, modified))))?;
        }
        for path in self.empty_directories {
            let path = FilePath::within(&path, limits)?;
            place(&mut files, &path, FileNode::Directory(Arc::default()))?;
        }
        Ok(files)
    }
}

fn place(files: &mut MemoryFiles, path: &FilePath, node: FileNode) -> Result<(), LoadError> {
    match (files.find(path), &node) {
        (Lookup::Nothing, _) => files.put(path, node),
        // A path below it implies it already.
        (Lookup::Directory(_), FileNode::Directory(_)) => {}
        (Lookup::Directory(_) | Lookup::File(_) | Lookup::BelowFile, _) => {
            return Err(LoadError::Taken { path: path.to_string() });
        }
    }
    Ok(())
}

impl Serialize for MemoryFiles {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        StoredMemoryFiles::from(self).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for MemoryFiles {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let stored = StoredMemoryFiles::deserialize(deserializer)?;
        stored.load(FilesystemLimits::default()).map_err(de::Error::custom)
    }
}
