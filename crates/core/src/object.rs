//! Objects: content that is stored once, under a name derived from it.
//!
//! Large texts, media and the files of a workspace are objects. They have git's format and git's ids (SHA-1, computed with
//! collision detection), so that a workspace can be exported as an ordinary repository without being hashed again. A journal
//! record never holds a large text itself; it holds an [`ObjectRef`].

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sha1_checked::{Digest as _, Sha1};

use crate::text_form::{shown_as_text, stored_as_text, words};

/// Texts and results with more bytes than this are stored as objects, not inside of records.
pub const INLINE_LIMIT: usize = 64 * 1024;

/// The id of an object, as git computes it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId([u8; 20]);

shown_as_text!(ObjectId, "pattern": "^[0-9a-f]{40}$");
stored_as_text!(ObjectId, "a string");

/// The text is not an object id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not an object id (40 hex digits): {text:?}")]
pub struct InvalidObjectId {
    /// The rejected text.
    pub text: String,
}

impl ObjectId {
    /// Returns the bytes of the id.
    pub fn as_bytes(&self) -> &[u8; 20] {
        &self.0
    }

    /// Restores an id from its bytes.
    pub fn from_bytes(bytes: [u8; 20]) -> Self {
        Self(bytes)
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        crate::hex::write(formatter, &self.0)
    }
}

impl FromStr for ObjectId {
    type Err = InvalidObjectId;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        crate::hex::parse(text)
            .map(Self)
            .ok_or_else(|| InvalidObjectId { text: text.chars().take(80).collect() })
    }
}

words! {
    /// Type of an object, in git's terms.
    #[non_exhaustive]
    ObjectKind = "kind of object" {
        /// Bytes: a file, a media item, a long text.
        Blob = "blob",
        /// A directory.
        Tree = "tree",
        /// A state of a workspace with its history.
        Commit = "commit",
    }
}

/// An object with its content.
#[derive(Clone, PartialEq, Eq)]
pub struct Object {
    id: ObjectId,
    kind: ObjectKind,
    bytes: Arc<[u8]>,
}

impl Object {
    /// Creates an object of `kind` with this content and computes its id.
    pub fn new(kind: ObjectKind, bytes: impl Into<Arc<[u8]>>) -> Self {
        let bytes = bytes.into();
        let mut hasher = Sha1::new();
        hasher.update(kind.as_str().as_bytes());
        hasher.update(format!(" {}\0", bytes.len()).as_bytes());
        hasher.update(&bytes);
        Self { id: ObjectId(hasher.finalize().into()), kind, bytes }
    }

    /// Creates a blob with this content.
    pub fn blob(bytes: impl Into<Arc<[u8]>>) -> Self {
        Self::new(ObjectKind::Blob, bytes)
    }

    /// The object's name.
    pub fn id(&self) -> ObjectId {
        self.id
    }

    /// The object's kind.
    pub fn kind(&self) -> ObjectKind {
        self.kind
    }

    /// The content, without git's header.
    pub fn bytes(&self) -> &Arc<[u8]> {
        &self.bytes
    }

    /// A reference to this object, as records hold it.
    pub fn to_ref(&self) -> ObjectRef {
        ObjectRef { object: self.id, length: self.bytes.len() as u64 }
    }
}

impl fmt::Debug for Object {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {} ({} bytes)", self.kind.as_str(), self.id, self.bytes.len())
    }
}

/// The name and the length of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ObjectRef {
    /// The object's name.
    pub object: ObjectId,
    /// How many bytes its content has.
    pub length: u64,
}

/// The content of an object, as far as a store still has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ObjectContent {
    /// The bytes.
    Bytes(Arc<[u8]>),
    /// A redaction removed them.
    Redacted,
}

impl From<&Object> for ObjectContent {
    fn from(object: &Object) -> Self {
        Self::Bytes(object.bytes().clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_those_of_git() {
        // `printf 'hello\n' | git hash-object --stdin`, and git's well-known empty blob and empty tree.
        assert_eq!(Object::blob(*b"hello\n").id().to_string(), "ce013625030ba8dba906f756967f9e9ca394464a");
        assert_eq!(Object::blob(*b"").id().to_string(), "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
        assert_eq!(
            Object::new(ObjectKind::Tree, *b"").id().to_string(),
            "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
        );
    }

    #[test]
    fn ids_survive_their_text() {
        let id = Object::blob(*b"hello\n").id();
        assert_eq!(id.to_string().parse(), Ok(id));
        for text in ["", "ce01", "CE013625030ba8dba906f756967f9e9ca394464a", "é"] {
            assert!(text.parse::<ObjectId>().is_err(), "{text}");
        }
    }
}
