//! Files in memory as JSON, so that they survive the process.
//!
//! ```json
//! {"v":1,
//!  "files":[{"path":"a.txt","text":"hello\n"},{"path":"run","base64":"/w==","executable":true}],
//!  "empty_directories":["build"]}
//! ```
//!
//! Content is text where it is UTF-8, and base64 where it is not. Directories that hold something are implied. What is read
//! is held to limits, and refused where two entries cannot both be there.

use std::sync::Arc;

use backstitch_core::json::{JsonLimits, LimitExceeded};
use backstitch_core::ports::FilesystemLimits;
use backstitch_core::time::Timestamp;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::MemoryFiles;
use super::node::{File, FileNode, Lookup};
use crate::{FilePath, InvalidPath};

const VERSION: u64 = 1;

/// The bytes are no files that could be loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The JSON is too long or nests too deeply.
    #[error(transparent)]
    Limit(#[from] LimitExceeded),
    /// It is not JSON of the right shape.
    #[error("the files cannot be read")]
    Json(#[source] serde_json::Error),
    /// It is of a version that is not known.
    #[error("the version of the files is {version}, and only {VERSION} is known")]
    Version {
        /// The version.
        version: u64,
    },
    /// A path is none, or is none within the limits.
    #[error(transparent)]
    Path(#[from] InvalidPath),
    /// A file has neither text nor base64, or both, or what is called base64 is not.
    #[error("{path}: the file has no content that can be read")]
    Content {
        /// The path.
        path: String,
    },
    /// A file is too large.
    #[error("{path}: {bytes} bytes are more than the limit of {limit}")]
    TooLarge {
        /// The path.
        path: String,
        /// How large it is.
        bytes: u64,
        /// How large it may be.
        limit: u64,
    },
    /// The path is taken already, or lies below a file.
    #[error("{path}: something else is in its place")]
    Taken {
        /// The path.
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
    /// The files as JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string(&StoredMemoryFiles::from(self))
            .expect("invariant: texts and numbers can be written as JSON")
    }

    /// Reads files from JSON, within the default limits.
    pub fn from_json(bytes: &[u8]) -> Result<Self, LoadError> {
        Self::from_json_within(bytes, JsonLimits::default(), FilesystemLimits::default())
    }

    /// Reads files from JSON, within limits on the text and on each file.
    pub fn from_json_within(
        bytes: &[u8],
        json: JsonLimits,
        limits: FilesystemLimits,
    ) -> Result<Self, LoadError> {
        #[derive(Deserialize)]
        struct Version {
            v: u64,
        }
        json.check(bytes)?;
        let Version { v: version } = serde_json::from_slice(bytes).map_err(LoadError::Json)?;
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
        match (self.text, self.base64) {
            (Some(text), None) => Ok(text.into_bytes().into()),
            (None, Some(base64)) => match STANDARD.decode(base64) {
                Ok(bytes) => Ok(bytes.into()),
                Err(_) => Err(LoadError::Content { path: self.path }),
            },
            (None, None) | (Some(_), Some(_)) => Err(LoadError::Content { path: self.path }),
        }
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
        // It is implied by something below it.
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
