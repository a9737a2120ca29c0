//! What git cannot hold of a workspace: the second half of a root.
//!
//! A manifest is a blob of compact JSON that lists exceptions only:
//!
//! ```json
//! {"v":1,"empty_directories":["build"],"refused":[{"path":"sub/.git","mode":"40000","object":"4b82…"}],"modes":"5f8b…"}
//! ```
//!
//! - `empty_directories`: directories that hold nothing. Those above them are implied.
//! - `refused`: what has a name that git refuses, by the topmost such path. A directory is named by the id of an ordinary
//!   tree, in which refused names may stand, so a change inside of a nested repository costs what changed.
//! - `modes`: the id of a [tree of modes](super::modes).
//! - `empty_directories_encoded`, `refused_encoded`: the same for paths that are no text, percent-encoded.
//!
//! Fields stand in the order above, lists are sorted by the paths' bytes, and what is empty is left out: one set of
//! exceptions is one text, so a root is a function of content alone.

use std::collections::{BTreeMap, BTreeSet};

use backstitch_core::object::{Object, ObjectId, ObjectKind};
use backstitch_core::ports::{Objects, WorkspaceError};
use serde::{Deserialize, Serialize};

use super::path::{decode, encode, is_path};
use super::tree::Mode;
use super::{damaged, fetch};

const VERSION: u64 = 1;

/// What git cannot hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Manifest {
    /// Directories that hold nothing.
    pub(crate) empty_directories: BTreeSet<Vec<u8>>,
    /// What has a refused name.
    pub(crate) refused: BTreeMap<Vec<u8>, (Mode, ObjectId)>,
    /// Exact modes.
    pub(crate) modes: Option<ObjectId>,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
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

impl Manifest {
    /// The manifest as an object.
    pub(crate) fn to_object(&self) -> Object {
        let mut stored = Stored { v: VERSION, modes: self.modes, ..Stored::default() };
        for path in &self.empty_directories {
            match str::from_utf8(path) {
                Ok(text) => stored.empty_directories.push(text.to_owned()),
                Err(_) => stored.empty_directories_encoded.push(encode(path)),
            }
        }
        for (path, (mode, object)) in &self.refused {
            let entry = |path| StoredRefused { path, mode: mode.as_str().to_owned(), object: *object };
            match str::from_utf8(path) {
                Ok(text) => stored.refused.push(entry(text.to_owned())),
                Err(_) => stored.refused_encoded.push(entry(encode(path))),
            }
        }
        Object::blob(
            serde_json::to_vec(&stored).expect("invariant: texts and numbers can be written as JSON"),
        )
    }

    /// Reads a stored manifest.
    pub(crate) fn load(objects: &dyn Objects, id: ObjectId) -> Result<Self, WorkspaceError> {
        let object = fetch(objects, id, ObjectKind::Blob)?;
        Self::from_bytes(object.bytes()).map_err(|reason| damaged(id, reason))
    }

    /// Reads a manifest.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Self, String> {
        let stored: Stored =
            serde_json::from_slice(bytes).map_err(|error| format!("it is no manifest: {error}"))?;
        if stored.v != VERSION {
            return Err(format!("it is a manifest of version {}, and only {VERSION} is known", stored.v));
        }
        let mut manifest = Self { modes: stored.modes, ..Self::default() };
        let plain = |path: String| Some(path.into_bytes());
        let encoded = |path: String| decode(path.as_bytes());
        let empty = stored.empty_directories.into_iter().map(plain);
        for path in empty.chain(stored.empty_directories_encoded.into_iter().map(encoded)) {
            manifest.empty_directories.insert(path.ok_or("a path in it is not encoded as it should be")?);
        }
        let split = |entry: StoredRefused, read: fn(String) -> Option<Vec<u8>>| {
            (read(entry.path), entry.mode, entry.object)
        };
        let refused = stored.refused.into_iter().map(|entry| split(entry, plain));
        for (path, mode, object) in
            refused.chain(stored.refused_encoded.into_iter().map(|entry| split(entry, encoded)))
        {
            let mode = Mode::parse(mode.as_bytes()).ok_or("a mode in it is not known")?;
            manifest
                .refused
                .insert(path.ok_or("a path in it is not encoded as it should be")?, (mode, object));
        }
        let mut paths = manifest.empty_directories.iter().chain(manifest.refused.keys());
        if !paths.all(|path| is_path(path)) {
            return Err("a path in it leads elsewhere".to_owned());
        }
        match **manifest.to_object().bytes() == *bytes {
            true => Ok(manifest),
            false => Err("it is not written in the one way that there is".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_are_a_promise() {
        let empty = Manifest::default();
        assert_eq!(&**empty.to_object().bytes(), br#"{"v":1}"#);
        let object = Object::blob(*b"hello\n").id();
        let manifest = Manifest {
            empty_directories: [b"b".to_vec(), b"a/\xff".to_vec()].into(),
            refused: [
                (b"s/.git".to_vec(), (Mode::Directory, object)),
                (b"\xfe/.git".to_vec(), (Mode::Link, object)),
            ]
            .into(),
            modes: Some(object),
        };
        let text = concat!(
            r#"{"v":1,"empty_directories":["b"],"refused":[{"path":"s/.git","mode":"40000","object":"ce013625030ba8dba906f756967f9e9ca394464a"}],"#,
            r#""modes":"ce013625030ba8dba906f756967f9e9ca394464a","empty_directories_encoded":["a/%ff"],"#,
            r#""refused_encoded":[{"path":"%fe/.git","mode":"120000","object":"ce013625030ba8dba906f756967f9e9ca394464a"}]}"#,
        );
        assert_eq!(&**manifest.to_object().bytes(), text.as_bytes());
        assert_eq!(Manifest::from_bytes(text.as_bytes()), Ok(manifest));
    }

    #[test]
    fn only_the_one_text_is_read() {
        for text in [
            "",
            "{}",
            r#"{"v":2}"#,
            r#"{"v":1} "#,
            r#"{"v":1,"empty_directories":[]}"#,
            r#"{"v":1,"new":1}"#,
            r#"{"v":1,"empty_directories":["b","a"]}"#,
            r#"{"v":1,"empty_directories":["../a"]}"#,
            r#"{"v":1,"empty_directories":["/a"]}"#,
            r#"{"v":1,"empty_directories_encoded":["a"]}"#,
        ] {
            assert!(Manifest::from_bytes(text.as_bytes()).is_err(), "{text}");
        }
    }
}
