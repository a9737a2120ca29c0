//! Directories in git's object format.
//!
//! A tree is a list of entries, each `mode SP name NUL id`, in one order: names are compared as bytes, a
//! directory's as if it ended in `/`. Each directory has exactly one encoding, so equal directories have
//! equal ids, and [`decode_tree`] accepts only that encoding: `encode_tree(decode_tree(bytes)) == bytes` for
//! all bytes that decode.
//!
//! Only the types that a workspace can contain are supported: files, executable files, links and directories.
//! Submodules and the modes of very old repositories are refused. This module does not check for names that
//! git refuses to check out; see [`git_refuses`](super::git_refuses).

use std::collections::BTreeSet;

use backstitch_core::object::{Object, ObjectId, ObjectKind};
use backstitch_core::ports::{Objects, WorkspaceError};

use super::names::is_name;
use super::{damaged, fetch};

/// Type of a tree entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TreeMode {
    /// A regular file: `100644`.
    File,
    /// An executable file: `100755`.
    Executable,
    /// A symbolic link, whose content is its target: `120000`.
    Link,
    /// A subdirectory: `40000`.
    Directory,
}

impl TreeMode {
    /// Returns the mode in git's notation.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::File => "100644",
            Self::Executable => "100755",
            Self::Link => "120000",
            Self::Directory => "40000",
        }
    }

    /// Parses a mode in git's notation.
    pub fn parse(text: &[u8]) -> Option<Self> {
        [Self::File, Self::Executable, Self::Link, Self::Directory]
            .into_iter()
            .find(|mode| mode.as_str().as_bytes() == text)
    }

    /// Maps the permissions of a file to git's two modes.
    pub fn of_permissions(permissions: u32) -> Self {
        if permissions & 0o100 == 0 { Self::File } else { Self::Executable }
    }

    /// Permissions that the mode implies, unless the manifest lists an exception.
    pub fn permissions(self) -> u32 {
        match self {
            Self::File => 0o644,
            Self::Executable | Self::Directory => 0o755,
            Self::Link => 0o777,
        }
    }

    /// Kind of object that such an entry names.
    pub fn object_kind(self) -> ObjectKind {
        match self {
            Self::Directory => ObjectKind::Tree,
            Self::File | Self::Executable | Self::Link => ObjectKind::Blob,
        }
    }
}

/// An entry of a tree.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TreeEntry {
    /// Name as bytes, which need not be UTF-8.
    pub name: Vec<u8>,
    /// Type of the entry.
    pub mode: TreeMode,
    /// Blob of a file or link, or tree of a directory.
    pub object: ObjectId,
}

/// The entries or the bytes are not a valid tree.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TreeError {
    /// The bytes end inside an entry.
    #[error("the tree ends in the middle of the entry at byte {at}")]
    Truncated {
        /// Offset of the entry.
        at: usize,
    },
    /// An entry has an unknown mode, or one that is not in git's notation.
    #[error("the entry at byte {at} has an unknown mode")]
    Mode {
        /// Offset of the entry.
        at: usize,
    },
    /// A name is empty, `.` or `..`, or contains a `/` or a zero byte.
    #[error("{name:?} cannot be a name in a tree")]
    Name {
        /// The invalid name.
        name: String,
    },
    /// A name occurs twice.
    #[error("{name:?} occurs twice in the tree")]
    Duplicate {
        /// The repeated name.
        name: String,
    },
    /// The entries are not in git's order.
    #[error("{name:?} is out of order in the tree")]
    Order {
        /// Name of the misplaced entry.
        name: String,
    },
}

impl TreeEntry {
    /// Sort key of the entry.
    fn key(&self) -> impl Iterator<Item = u8> {
        let end = (self.mode == TreeMode::Directory).then_some(b'/');
        self.name.iter().copied().chain(end)
    }
}

/// Encodes a tree. The entries may be in any order.
pub fn encode_tree(entries: &[TreeEntry]) -> Result<Vec<u8>, TreeError> {
    let mut sorted: Vec<&TreeEntry> = entries.iter().collect();
    sorted.sort_by(|left, right| left.key().cmp(right.key()));
    let mut names = BTreeSet::new();
    let mut bytes = Vec::with_capacity(entries.iter().map(|entry| entry.name.len() + 28).sum());
    for entry in sorted {
        check_name(&entry.name)?;
        if !names.insert(&entry.name) {
            return Err(TreeError::Duplicate { name: shown(&entry.name) });
        }
        bytes.extend_from_slice(entry.mode.as_str().as_bytes());
        bytes.push(b' ');
        bytes.extend_from_slice(&entry.name);
        bytes.push(0);
        bytes.extend_from_slice(entry.object.as_bytes());
    }
    Ok(bytes)
}

/// Encodes a tree as an object.
pub fn tree_object(entries: &[TreeEntry]) -> Result<Object, TreeError> {
    Ok(Object::new(ObjectKind::Tree, encode_tree(entries)?))
}

/// Returns the tree without entries.
pub fn empty_tree() -> Object {
    TreeBuilder::default().build()
}

/// A builder of trees. Entries may be added in any order.
#[derive(Debug, Default)]
pub struct TreeBuilder {
    entries: Vec<TreeEntry>,
}

impl TreeBuilder {
    /// Adds an entry. The name must be valid and not yet in use.
    pub fn push(&mut self, name: &[u8], mode: TreeMode, object: ObjectId) {
        self.entries.push(TreeEntry { name: name.to_vec(), mode, object });
    }

    /// Returns whether the tree has no entries.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Encodes the tree as an object.
    pub fn build(self) -> Object {
        tree_object(&self.entries).expect("invariant: names in a directory are valid and unique")
    }
}

/// Loads the entries of a stored tree, in git's order.
pub fn load_tree(objects: &dyn Objects, id: ObjectId) -> Result<Vec<TreeEntry>, WorkspaceError> {
    let object = fetch(objects, id, ObjectKind::Tree)?;
    decode_tree(object.bytes()).map_err(|error| damaged(id, error.to_string()))
}

/// Decodes a tree to its entries, in git's order.
pub fn decode_tree(bytes: &[u8]) -> Result<Vec<TreeEntry>, TreeError> {
    let mut entries: Vec<TreeEntry> = Vec::new();
    let mut names = BTreeSet::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let at = bytes.len() - rest.len();
        let (mode, after_mode) = split(rest, b' ').ok_or(TreeError::Truncated { at })?;
        let mode = TreeMode::parse(mode).ok_or(TreeError::Mode { at })?;
        let (name, after_name) = split(after_mode, 0).ok_or(TreeError::Truncated { at })?;
        let (id, after_id) = after_name.split_first_chunk::<20>().ok_or(TreeError::Truncated { at })?;
        check_name(name)?;
        if !names.insert(name) {
            return Err(TreeError::Duplicate { name: shown(name) });
        }
        let entry = TreeEntry { name: name.to_vec(), mode, object: ObjectId::from_bytes(*id) };
        if entries.last().is_some_and(|last| last.key().cmp(entry.key()).is_ge()) {
            return Err(TreeError::Order { name: shown(name) });
        }
        entries.push(entry);
        rest = after_id;
    }
    Ok(entries)
}

fn split(bytes: &[u8], at: u8) -> Option<(&[u8], &[u8])> {
    let position = bytes.iter().position(|byte| *byte == at)?;
    Some((&bytes[..position], &bytes[position + 1..]))
}

fn check_name(name: &[u8]) -> Result<(), TreeError> {
    if is_name(name) { Ok(()) } else { Err(TreeError::Name { name: shown(name) }) }
}

fn shown(name: &[u8]) -> String {
    String::from_utf8_lossy(name).chars().take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str, mode: TreeMode) -> TreeEntry {
        TreeEntry { name: name.into(), mode, object: Object::blob(*b"hello\n").id() }
    }

    #[test]
    fn ids_are_those_of_git() {
        // `git mktree` returned these ids for the same entries.
        assert_eq!(tree_object(&[]).unwrap().id().to_string(), "4b825dc642cb6eb9a060e54bf8d69288fbee4904");
        let one = tree_object(&[entry("hello", TreeMode::File)]).unwrap();
        assert_eq!(one.id().to_string(), "b4d01e9b0c4a9356736dfddf8830ba9a54f5271c");
    }

    #[test]
    fn a_directory_is_sorted_as_if_it_ended_in_a_slash() {
        let files = ["a", "a-", "a.c", "a0"].map(|name| entry(name, TreeMode::File));
        let names = |entries: &[TreeEntry]| {
            let decoded = decode_tree(&encode_tree(entries).unwrap()).unwrap();
            decoded.into_iter().map(|entry| String::from_utf8(entry.name).unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(names(&files), ["a", "a-", "a.c", "a0"]);
        let mut directory = files.clone();
        directory[0].mode = TreeMode::Directory;
        assert_eq!(names(&directory), ["a-", "a.c", "a", "a0"]);
    }

    #[test]
    fn what_is_no_tree_is_refused() {
        for name in ["", ".", "..", "a/b", "a\0b"] {
            let result = encode_tree(&[entry(name, TreeMode::File)]);
            assert!(matches!(result, Err(TreeError::Name { .. })), "{name:?}");
        }
        let twice = [entry("a", TreeMode::File), entry("a", TreeMode::Directory)];
        assert!(matches!(encode_tree(&twice), Err(TreeError::Duplicate { .. })));

        let one = encode_tree(&[entry("b", TreeMode::File)]).unwrap();
        for end in 1..one.len() {
            assert!(decode_tree(&one[..end]).is_err(), "{end}");
        }
        let unsorted = [&one[..], &encode_tree(&[entry("a", TreeMode::File)]).unwrap()].concat();
        assert!(matches!(decode_tree(&unsorted), Err(TreeError::Order { .. })));
        assert!(matches!(decode_tree(&[&one[..], &one].concat()), Err(TreeError::Duplicate { .. })));
        for mode in ["0100644", "100664", "160000", "040000", ""] {
            let bytes = [mode.as_bytes(), &one[6..]].concat();
            assert!(matches!(decode_tree(&bytes), Err(TreeError::Mode { .. })), "{mode}");
        }
    }
}
