//! What git cannot hold of a workspace: the second half of a root.
//!
//! A [`WorkspaceRoot`](crate::journal::WorkspaceRoot) is a tree and a manifest. The tree holds every file whose name git
//! takes. The manifest is a blob with the exceptions, and is small, because most files are none:
//!
//! ```json
//! {"v":1,"empty_directories":["build","src/empty"],"refused":[{"path":"sub/.git","mode":"40000","object":"4b82…"}]}
//! ```
//!
//! - `v` is the version of this format, 1.
//! - `empty_directories`: the paths of directories that hold nothing at all. A directory that holds something, were it only
//!   an empty directory, is not listed: it is implied by what is below it. Those inside of refused directories are listed too.
//! - `refused`: what has a name that [git refuses](super::git_refuses), by the path of the topmost such name: `mode` as in a
//!   tree, `object` a blob, or an ordinary tree with everything below. Such a tree may hold refused names itself. A refused
//!   directory without any file is not listed; its empty directories say that it is there.
//!
//! The text is compact JSON with the fields in this order; lists are sorted by the path's bytes, without repetition; a list
//! with nothing in it is left out, so that the manifest of a workspace without exceptions is `{"v":1}`. There is one manifest
//! for one set of exceptions, which makes a root a function of content alone, and reading accepts that one only.
//!
//! A workspace that can hold more than this, such as exact modes or names that are not text, adds fields of its own under the
//! same rules. Whoever does not know a field cannot put it back, and refuses the manifest.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::{FilePath, InvalidPath, TreeMode};
use crate::json::{JsonLimits, LimitExceeded};
use crate::object::{Object, ObjectId};

const VERSION: u64 = 1;

/// A manifest is flat.
const LIMITS: JsonLimits = JsonLimits { bytes: 64 * 1024 * 1024, depth: 4 };

/// What git cannot hold of a workspace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Manifest {
    /// Directories that hold nothing.
    pub empty_directories: BTreeSet<FilePath>,
    /// What has a name that git refuses.
    pub refused: BTreeMap<FilePath, Refused>,
}

/// Something with a name that git refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refused {
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
    /// A path is none.
    #[error(transparent)]
    Path(#[from] InvalidPath),
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

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    v: u64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    empty_directories: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    refused: Vec<StoredRefused>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredRefused {
    path: String,
    mode: String,
    object: ObjectId,
}

impl Manifest {
    /// Whether git can hold all.
    pub fn is_empty(&self) -> bool {
        self.empty_directories.is_empty() && self.refused.is_empty()
    }

    /// The manifest as an object.
    pub fn to_object(&self) -> Object {
        let stored = Stored {
            v: VERSION,
            empty_directories: self.empty_directories.iter().map(|path| path.as_str().to_owned()).collect(),
            refused: self
                .refused
                .iter()
                .map(|(path, refused)| StoredRefused {
                    path: path.as_str().to_owned(),
                    mode: refused.mode.as_str().to_owned(),
                    object: refused.object,
                })
                .collect(),
        };
        let bytes = serde_json::to_vec(&stored).expect("invariant: texts and numbers can be written as JSON");
        Object::blob(bytes)
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
        let stored: Stored = serde_json::from_slice(bytes).map_err(ManifestError::Json)?;
        let mut manifest = Self::default();
        for path in &stored.empty_directories {
            manifest.empty_directories.insert(FilePath::new(path)?);
        }
        for refused in stored.refused {
            let mode = TreeMode::parse(refused.mode.as_bytes())
                .ok_or_else(|| ManifestError::Mode { mode: refused.mode.chars().take(20).collect() })?;
            manifest.refused.insert(FilePath::new(&refused.path)?, Refused { mode, object: refused.object });
        }
        match **manifest.to_object().bytes() == *bytes {
            true => Ok(manifest),
            false => Err(ManifestError::NotCanonical),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> FilePath {
        FilePath::new(text).unwrap()
    }

    #[test]
    fn the_bytes_are_a_promise() {
        let empty = Manifest::default().to_object();
        assert_eq!(&**empty.bytes(), br#"{"v":1}"#);
        assert_eq!(empty.id().to_string(), "5f8b795830acbab5961c1a28c76a7916c9631493");

        let object = Object::blob(*b"hello\n").id();
        let manifest = Manifest {
            empty_directories: [path("b"), path("a/c"), path("a-b")].into(),
            refused: [(path("s/.git"), Refused { mode: TreeMode::Directory, object })].into(),
        };
        let text = r#"{"v":1,"empty_directories":["a-b","a/c","b"],"refused":[{"path":"s/.git","mode":"40000","object":"ce013625030ba8dba906f756967f9e9ca394464a"}]}"#;
        assert_eq!(&**manifest.to_object().bytes(), text.as_bytes());
        assert_eq!(Manifest::from_bytes(text.as_bytes()).unwrap(), manifest);
    }

    #[test]
    fn only_the_one_text_is_read() {
        for (text, wanted) in [
            ("", "it cannot be read"),
            ("{}", "it cannot be read"),
            (r#"{"v":2}"#, "its version is 2, and only 1 is known"),
            (r#"{"v":2,"new":[]}"#, "its version is 2, and only 1 is known"),
            (r#"{"v":1,"modes":[]}"#, "it cannot be read"),
            (r#"{"v":1} "#, "it is not written in the one way that there is"),
            (r#"{"v":1,"empty_directories":[]}"#, "it is not written in the one way that there is"),
            (r#"{"v":1,"empty_directories":["b","a"]}"#, "it is not written in the one way that there is"),
            (r#"{"v":1,"empty_directories":["a","a"]}"#, "it is not written in the one way that there is"),
            (r#"{"v":1,"empty_directories":["a/"]}"#, "it is not written in the one way that there is"),
            (
                r#"{"v":1,"empty_directories":["../a"]}"#,
                "\"../a\" is not a path below the workspace: it goes up with `..`",
            ),
            ("[[[[[[", "JSON nests deeper than the limit of 4 levels"),
        ] {
            assert_eq!(Manifest::from_bytes(text.as_bytes()).unwrap_err().to_string(), wanted, "{text}");
        }
    }
}
