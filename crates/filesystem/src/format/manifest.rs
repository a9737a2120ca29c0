//! What git cannot hold of a workspace: the second half of a root.
//!
//! A [`WorkspaceRoot`](backstitch_core::journal::WorkspaceRoot) is a tree and a manifest. The tree holds every file whose name git
//! takes. The manifest is a blob with the exceptions, and is small, because most files are none:
//!
//! ```json
//! {"v":1,"empty_directories":["build","src/empty"],"refused":[{"path":"sub/.git","mode":"40000","object":"4b82…"}],"modes":"5f8b…"}
//! ```
//!
//! - `v` is the version of this format, 1.
//! - `empty_directories`: the paths of directories that hold nothing at all. A directory that holds something, were it only
//!   an empty directory, is not listed: it is implied by what is below it. Those inside of refused directories are listed too.
//! - `refused`: what has a name that [git refuses](super::git_refuses), by the path of the topmost such name: `mode` as in a
//!   tree, `object` a blob, or an ordinary tree with everything below, so that a change inside of a nested repository costs
//!   what changed. Such a tree may hold refused names itself. A refused directory without any file is not listed; its empty
//!   directories say that it is there.
//! - `modes`: the id of a [tree of modes](super::Modes).
//! - `empty_directories_encoded`, `refused_encoded`: the same for paths that are no text, percent-encoded.
//!
//! The text is compact JSON with the fields in this order; lists are sorted by the path's bytes, without repetition; what is
//! empty is left out, so that the manifest of a workspace without exceptions is `{"v":1}`. There is one manifest
//! for one set of exceptions, which makes a root a function of content alone, and reading accepts that one only.

use std::collections::{BTreeMap, BTreeSet};

use backstitch_core::json::{JsonLimits, LimitExceeded};
use backstitch_core::object::{Object, ObjectId, ObjectKind};
use backstitch_core::ports::{Objects, WorkspaceError};
use serde::{Deserialize, Serialize};

use super::names::{decode, encode, is_path, shown};
use super::{TreeMode, damaged, fetch};

const VERSION: u64 = 1;

/// A manifest is flat.
const LIMITS: JsonLimits = JsonLimits { bytes: 64 * 1024 * 1024, depth: 4 };

/// What git cannot hold of a workspace. Paths are bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Manifest {
    /// Directories that hold nothing.
    pub empty_directories: BTreeSet<Vec<u8>>,
    /// What has a name that git refuses.
    pub refused: BTreeMap<Vec<u8>, RefusedEntry>,
    /// Exact modes: the id of a [tree of modes](super::Modes).
    pub modes: Option<ObjectId>,
}

/// Something with a name that git refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RefusedEntry {
    /// What it is.
    pub mode: TreeMode,
    /// Its content.
    pub object: ObjectId,
}

/// The bytes are no manifest that is understood here.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ManifestError {
    /// They are too long or nest too deeply.
    #[error(transparent)]
    Limit(#[from] LimitExceeded),
    /// They are not JSON of the right shape, or hold a field that is not known.
    #[error("it cannot be read")]
    Json(#[source] serde_json::Error),
    /// They are of a version that is not known.
    #[error("its version is {version}, and only {VERSION} is known")]
    Version {
        /// The version.
        version: u64,
    },
    /// A path leads elsewhere.
    #[error("{path:?} is no path in a workspace")]
    Path {
        /// The path.
        path: String,
    },
    /// A path is not encoded as it should be.
    #[error("{path:?} is not encoded as a path")]
    Encoding {
        /// What stands there.
        path: String,
    },
    /// A mode is none.
    #[error("{mode:?} is no mode")]
    Mode {
        /// What stands there.
        mode: String,
    },
    /// The same could be written differently: order, repetition, space.
    #[error("it is not written in the one way that there is")]
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

/// How paths stand in a list.
type ReadPath = fn(String) -> Result<Vec<u8>, ManifestError>;

impl Manifest {
    /// Whether git can hold all.
    pub fn is_empty(&self) -> bool {
        self.empty_directories.is_empty() && self.refused.is_empty() && self.modes.is_none()
    }

    /// The manifest as an object.
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
        let bytes = serde_json::to_vec(&stored).expect("invariant: texts and numbers can be written as JSON");
        Object::blob(bytes)
    }

    /// Reads a stored manifest.
    pub fn load(objects: &dyn Objects, id: ObjectId) -> Result<Self, WorkspaceError> {
        let object = fetch(objects, id, ObjectKind::Blob)?;
        Self::from_bytes(object.bytes()).map_err(|error| damaged(id, error.to_string()))
    }

    /// Reads a manifest.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ManifestError> {
        #[derive(Deserialize)]
        struct Version {
            v: u64,
        }
        LIMITS.check(bytes)?;
        let Version { v: version } = serde_json::from_slice(bytes).map_err(ManifestError::Json)?;
        if version != VERSION {
            return Err(ManifestError::Version { version });
        }
        let stored: StoredManifest = serde_json::from_slice(bytes).map_err(ManifestError::Json)?;
        let mut manifest = Self { modes: stored.modes, ..Self::default() };
        manifest.read(stored.empty_directories, stored.refused, plain)?;
        manifest.read(stored.empty_directories_encoded, stored.refused_encoded, encoded)?;
        match **manifest.to_object().bytes() == *bytes {
            true => Ok(manifest),
            false => Err(ManifestError::NotCanonical),
        }
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
    match is_path(&path) {
        true => Ok(path),
        false => Err(ManifestError::Path { path: shown(&path).chars().take(200).collect() }),
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
        let not_canonical = "it is not written in the one way that there is";
        for (text, wanted) in [
            ("", "it cannot be read"),
            ("{}", "it cannot be read"),
            (r#"{"v":2}"#, "its version is 2, and only 1 is known"),
            (r#"{"v":2,"new":[]}"#, "its version is 2, and only 1 is known"),
            (r#"{"v":1,"new":1}"#, "it cannot be read"),
            (r#"{"v":1,"modes":[]}"#, "it cannot be read"),
            (r#"{"v":1} "#, not_canonical),
            (r#"{"v":1,"empty_directories":[]}"#, not_canonical),
            (r#"{"v":1,"empty_directories":["b","a"]}"#, not_canonical),
            (r#"{"v":1,"empty_directories":["a","a"]}"#, not_canonical),
            (r#"{"v":1,"empty_directories_encoded":["a"]}"#, not_canonical),
            (r#"{"v":1,"empty_directories_encoded":["a%"]}"#, "\"a%\" is not encoded as a path"),
            (r#"{"v":1,"empty_directories":["a/"]}"#, "\"a/\" is no path in a workspace"),
            (r#"{"v":1,"empty_directories":["/a"]}"#, "\"/a\" is no path in a workspace"),
            (r#"{"v":1,"empty_directories":["../a"]}"#, "\"../a\" is no path in a workspace"),
            ("[[[[[[", "JSON nests deeper than the limit of 4 levels"),
        ] {
            assert_eq!(Manifest::from_bytes(text.as_bytes()).unwrap_err().to_string(), wanted, "{text}");
        }
    }
}
