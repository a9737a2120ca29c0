//! The manifest: the part of a workspace that git cannot represent, and the second half of a root.
//!
//! A [`WorkspaceRoot`](backstitch_core::journal::WorkspaceRoot) is a tree and a manifest. The tree holds
//! every file whose name git accepts. The manifest is a blob with the exceptions. It is small, because most
//! files are none:
//!
//! ```json
//! {"v":1,"empty_directories":["build","src/empty"],"refused":[{"path":"sub/.git","mode":"40000","object":"4b82…"}],"modes":"5f8b…"}
//! ```
//!
//! - `v` is the version of this format, 1.
//! - `empty_directories`: paths of directories without any entry. A directory with an entry, even if that is
//!   only an empty directory, is not listed: the paths below it imply it. Empty directories inside refused
//!   ones are listed too.
//! - `refused`: entries with a name that [git refuses](super::git_refuses), by the path of the topmost such
//!   name. `mode` is that of a tree entry; `object` is a blob, or an ordinary tree with everything below, so
//!   that a change inside a nested repository costs only the size of the change. Such a tree may contain
//!   refused names itself. A refused directory without any file is not listed; its empty directories imply
//!   it.
//! - `modes`: the id of a [tree of modes](super::Modes).
//! - `empty_directories_encoded`, `refused_encoded`: the same for paths that are not UTF-8, percent-encoded.
//!
//! The text is compact JSON with the fields in this order. Lists are sorted by the path's bytes, without
//! repetition. Empty fields are omitted, so the manifest of a workspace without exceptions is `{"v":1}`. Each
//! set of exceptions has exactly one manifest, which makes a root a function of content alone; reading
//! accepts only that form.

use std::collections::{BTreeMap, BTreeSet};

use backstitch_core::json::{JsonLimits, LimitExceeded};
use backstitch_core::object::{Object, ObjectId, ObjectKind};
use backstitch_core::ports::{Objects, WorkspaceError};
use serde::{Deserialize, Serialize};

use super::names::{decode, encode, is_path, shown};
use super::{TreeMode, damaged, fetch, version_of};

const VERSION: u64 = 1;

/// Limits of a manifest's JSON, which is flat.
const LIMITS: JsonLimits = JsonLimits { bytes: 64 * 1024 * 1024, depth: 4 };

/// The part of a workspace that git cannot represent. Paths are bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Manifest {
    /// Directories without any entry.
    pub empty_directories: BTreeSet<Vec<u8>>,
    /// Entries with names that git refuses.
    pub refused: BTreeMap<Vec<u8>, RefusedEntry>,
    /// Exact modes: the id of a [tree of modes](super::Modes).
    pub modes: Option<ObjectId>,
}

/// An entry with a name that git refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RefusedEntry {
    /// Type of the entry.
    pub mode: TreeMode,
    /// Blob with the content, or tree of the directory.
    pub object: ObjectId,
}

/// The bytes are not a valid manifest.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ManifestError {
    /// The JSON is too long or nests too deeply.
    #[error(transparent)]
    Limit(#[from] LimitExceeded),
    /// The JSON has the wrong shape or an unknown field.
    #[error("it cannot be read")]
    Json(#[source] serde_json::Error),
    /// The version is unknown.
    #[error("its version is {version}, but only {VERSION} is supported")]
    Version {
        /// Version number in the manifest.
        version: u64,
    },
    /// A path leads out of the workspace.
    #[error("{path:?} is not a path in a workspace")]
    Path {
        /// Text of the invalid path.
        path: String,
    },
    /// A path is not correctly percent-encoded.
    #[error("{path:?} is not a percent-encoded path")]
    Encoding {
        /// Text of the invalid path.
        path: String,
    },
    /// A mode is unknown.
    #[error("{mode:?} is not a mode")]
    Mode {
        /// Text of the invalid mode.
        mode: String,
    },
    /// The JSON is not in canonical form: order, repetition or spaces differ.
    #[error("it is not in canonical form")]
    NotCanonical,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredManifest {
    v: u64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    empty_directories: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    refused: Vec<StoredRefused>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    modes: Option<ObjectId>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    empty_directories_encoded: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    refused_encoded: Vec<StoredRefused>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredRefused {
    path: String,
    mode: String,
    object: ObjectId,
}

/// Decodes a path of one of the lists.
type ReadPath = fn(String) -> Result<Vec<u8>, ManifestError>;

impl Manifest {
    /// Returns whether there are no exceptions.
    pub fn is_empty(&self) -> bool {
        self.empty_directories.is_empty() && self.refused.is_empty() && self.modes.is_none()
    }

    /// Encodes the manifest as an object.
    pub fn to_object(&self) -> Object {
        let mut stored = StoredManifest { v: VERSION, modes: self.modes, ..StoredManifest::default() };
        for path in &self.empty_directories {
            match str::from_utf8(path) {
                Ok(text) => stored.empty_directories.push(text.to_owned()),
                Err(_) => stored.empty_directories_encoded.push(encode(path)),
            }
        }
        for (path, RefusedEntry { mode, object }) in &self.refused {
            let entry = |path| StoredRefused { path, mode: mode.as_str().to_owned(), object: *object };
            match str::from_utf8(path) {
                Ok(text) => stored.refused.push(entry(text.to_owned())),
                Err(_) => stored.refused_encoded.push(entry(encode(path))),
            }
        }
        let bytes = serde_json::to_vec(&stored).expect("invariant: strings and numbers encode as JSON");
        Object::blob(bytes)
    }

    /// Loads a stored manifest.
    pub fn load(objects: &dyn Objects, id: ObjectId) -> Result<Self, WorkspaceError> {
        let object = fetch(objects, id, ObjectKind::Blob)?;
        Self::from_bytes(object.bytes()).map_err(|error| damaged(id, error.to_string()))
    }

    /// Decodes a manifest and checks that it is in canonical form.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ManifestError> {
        LIMITS.check(bytes)?;
        let version = version_of(bytes).map_err(ManifestError::Json)?;
        if version != VERSION {
            return Err(ManifestError::Version { version });
        }
        let stored: StoredManifest = serde_json::from_slice(bytes).map_err(ManifestError::Json)?;
        let mut manifest = Self { modes: stored.modes, ..Self::default() };
        manifest.read(stored.empty_directories, stored.refused, plain)?;
        manifest.read(stored.empty_directories_encoded, stored.refused_encoded, encoded)?;
        if **manifest.to_object().bytes() == *bytes { Ok(manifest) } else { Err(ManifestError::NotCanonical) }
    }

    fn read(
        &mut self,
        empty_directories: Vec<String>,
        refused: Vec<StoredRefused>,
        read: ReadPath,
    ) -> Result<(), ManifestError> {
        for path in empty_directories {
            self.empty_directories.insert(read(path)?);
        }
        for StoredRefused { path, mode, object } in refused {
            let mode = TreeMode::parse(mode.as_bytes())
                .ok_or_else(|| ManifestError::Mode { mode: mode.chars().take(20).collect() })?;
            self.refused.insert(read(path)?, RefusedEntry { mode, object });
        }
        Ok(())
    }
}

fn plain(path: String) -> Result<Vec<u8>, ManifestError> {
    checked(path.into_bytes())
}

fn encoded(path: String) -> Result<Vec<u8>, ManifestError> {
    let bytes = decode(path.as_bytes());
    checked(bytes.ok_or_else(|| ManifestError::Encoding { path: path.chars().take(200).collect() })?)
}

fn checked(path: Vec<u8>) -> Result<Vec<u8>, ManifestError> {
    if is_path(&path) {
        Ok(path)
    } else {
        Err(ManifestError::Path { path: shown(&path).chars().take(200).collect() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_are_a_promise() {
        let empty = Manifest::default().to_object();
        assert_eq!(&**empty.bytes(), br#"{"v":1}"#);
        assert_eq!(empty.id().to_string(), "5f8b795830acbab5961c1a28c76a7916c9631493");

        let object = Object::blob(*b"hello\n").id();
        let refused = |mode| RefusedEntry { mode, object };
        let mut manifest = Manifest {
            empty_directories: [b"b".to_vec(), b"a/c".to_vec(), b"a-b".to_vec()].into(),
            refused: [(b"s/.git".to_vec(), refused(TreeMode::Directory))].into(),
            modes: None,
        };
        let text = r#"{"v":1,"empty_directories":["a-b","a/c","b"],"refused":[{"path":"s/.git","mode":"40000","object":"ce013625030ba8dba906f756967f9e9ca394464a"}]}"#;
        assert_eq!(&**manifest.to_object().bytes(), text.as_bytes());
        assert_eq!(Manifest::from_bytes(text.as_bytes()).unwrap(), manifest);

        manifest.empty_directories = [b"b".to_vec(), b"a/\xff".to_vec()].into();
        manifest.refused.insert(b"\xfe/.git".to_vec(), refused(TreeMode::Link));
        manifest.modes = Some(object);
        let text = concat!(
            r#"{"v":1,"empty_directories":["b"],"refused":[{"path":"s/.git","mode":"40000","object":"ce013625030ba8dba906f756967f9e9ca394464a"}],"#,
            r#""modes":"ce013625030ba8dba906f756967f9e9ca394464a","empty_directories_encoded":["a/%ff"],"#,
            r#""refused_encoded":[{"path":"%fe/.git","mode":"120000","object":"ce013625030ba8dba906f756967f9e9ca394464a"}]}"#,
        );
        assert_eq!(&**manifest.to_object().bytes(), text.as_bytes());
        assert_eq!(Manifest::from_bytes(text.as_bytes()).unwrap(), manifest);
    }

    #[test]
    fn only_the_one_text_is_read() {
        let not_canonical = "it is not in canonical form";
        for (text, wanted) in [
            ("", "it cannot be read"),
            ("{}", "it cannot be read"),
            (r#"{"v":2}"#, "its version is 2, but only 1 is supported"),
            (r#"{"v":2,"new":[]}"#, "its version is 2, but only 1 is supported"),
            (r#"{"v":1,"new":1}"#, "it cannot be read"),
            (r#"{"v":1,"modes":[]}"#, "it cannot be read"),
            (r#"{"v":1} "#, not_canonical),
            (r#"{"v":1,"empty_directories":[]}"#, not_canonical),
            (r#"{"v":1,"empty_directories":["b","a"]}"#, not_canonical),
            (r#"{"v":1,"empty_directories":["a","a"]}"#, not_canonical),
            (r#"{"v":1,"empty_directories_encoded":["a"]}"#, not_canonical),
            (r#"{"v":1,"empty_directories_encoded":["a%"]}"#, "\"a%\" is not a percent-encoded path"),
            (r#"{"v":1,"empty_directories":["a/"]}"#, "\"a/\" is not a path in a workspace"),
            (r#"{"v":1,"empty_directories":["/a"]}"#, "\"/a\" is not a path in a workspace"),
            (r#"{"v":1,"empty_directories":["../a"]}"#, "\"../a\" is not a path in a workspace"),
            ("[[[[[[", "JSON nests deeper than the limit of 4 levels"),
        ] {
            assert_eq!(Manifest::from_bytes(text.as_bytes()).unwrap_err().to_string(), wanted, "{text}");
        }
    }
}
