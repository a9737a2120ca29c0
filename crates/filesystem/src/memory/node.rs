//! The persistent tree below a [`MemoryFiles`](super::MemoryFiles).
//!
//! Files and directories are shared and immutable. A change creates new directories along one path and shares
//! the rest. So a snapshot is a pointer, and the cached tree id of a directory stays valid as long as nothing
//! below it changes.

use std::sync::{Arc, OnceLock};

use backstitch_core::object::{Object, ObjectId};
use backstitch_core::time::Timestamp;
use imbl::OrdMap;

use crate::FilePath;
use crate::format::TreeMode;

/// A file or a directory. Those that are shared are equal without being compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum FileNode {
    File(Arc<File>),
    Directory(Arc<Directory>),
}

/// Content and attributes of a file.
#[derive(Debug)]
pub(super) struct File {
    pub(super) bytes: Arc<[u8]>,
    pub(super) executable: bool,
    pub(super) modified: Option<Timestamp>,
    blob: OnceLock<Object>,
}

/// Entries of a directory, with a cached summary.
#[derive(Debug, Default)]
pub(super) struct Directory {
    entries: OrdMap<Arc<str>, FileNode>,
    summary: OnceLock<Summary>,
}

/// Properties of everything below a directory.
#[derive(Debug, Clone, Copy)]
pub(super) struct Summary {
    /// Tree of everything that git accepts, or `None` if that is nothing.
    pub(super) tree: Option<ObjectId>,
    /// True if there is an entry below that git cannot represent.
    pub(super) exceptional: bool,
}

/// Result of looking up a path.
#[derive(Debug, Clone, Copy)]
pub(super) enum Lookup<'a> {
    File(&'a Arc<File>),
    Directory(&'a Arc<Directory>),
    Nothing,
    /// A prefix of the path is a file.
    BelowFile,
}

impl File {
    pub(super) fn new(bytes: Arc<[u8]>, executable: bool, modified: Option<Timestamp>) -> Self {
        Self { bytes, executable, modified, blob: OnceLock::new() }
    }

    /// Creates a file from a blob.
    pub(super) fn from_blob(blob: Object, executable: bool, modified: Option<Timestamp>) -> Self {
        Self { bytes: blob.bytes().clone(), executable, modified, blob: OnceLock::from(blob) }
    }

    /// The content as an object. It is hashed only once.
    pub(super) fn blob(&self) -> &Object {
        self.blob.get_or_init(|| Object::blob(self.bytes.clone()))
    }

    pub(super) fn mode(&self) -> TreeMode {
        if self.executable { TreeMode::Executable } else { TreeMode::File }
    }
}

impl PartialEq for File {
    fn eq(&self, other: &Self) -> bool {
        self.executable == other.executable && self.modified == other.modified && self.bytes == other.bytes
    }
}

impl Clone for Directory {
    /// Drops the cached summary: a directory is cloned to be changed.
    fn clone(&self) -> Self {
        Self { entries: self.entries.clone(), summary: OnceLock::new() }
    }
}

impl Eq for File {}

impl Eq for Directory {}

impl PartialEq for Directory {
    fn eq(&self, other: &Self) -> bool {
        self.entries.ptr_eq(&other.entries)
            || self.entries.len() == other.entries.len() && self.entries.iter().eq(other.entries.iter())
    }
}

impl Directory {
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(super) fn get(&self, name: &str) -> Option<&FileNode> {
        self.entries.get(name)
    }

    /// Iterates over the entries by name.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&Arc<str>, &FileNode)> {
        self.entries.iter()
    }

    /// Returns the cached summary, or computes it.
    pub(super) fn summary(&self, find_out: impl FnOnce() -> Summary) -> Summary {
        *self.summary.get_or_init(find_out)
    }

    pub(super) fn find<'a>(self: &'a Arc<Self>, path: &FilePath) -> Lookup<'a> {
        let mut found = Lookup::Directory(self);
        for segment in path.segments() {
            found = match found {
                Lookup::Directory(directory) => match directory.get(segment) {
                    Some(FileNode::File(file)) => Lookup::File(file),
                    Some(FileNode::Directory(below)) => Lookup::Directory(below),
                    None => Lookup::Nothing,
                },
                Lookup::File(_) | Lookup::BelowFile => return Lookup::BelowFile,
                Lookup::Nothing => return Lookup::Nothing,
            };
        }
        found
    }

    /// Puts a node at a path, creates the directories above it, and returns the previous node. The path must
    /// not be the root, and no prefix of it may be a file.
    pub(super) fn put(self: &mut Arc<Self>, path: &FilePath, node: FileNode) -> Option<FileNode> {
        let mut segments: Vec<&str> = path.segments().collect();
        let name = segments.pop().expect("invariant: nothing is put at the root");
        let mut directory = self.entries_mut();
        for segment in segments {
            if directory.get(segment).is_none() {
                directory.insert(segment.into(), FileNode::Directory(Arc::default()));
            }
            directory = match directory.get_mut(segment) {
                Some(FileNode::Directory(below)) => below.entries_mut(),
                Some(FileNode::File(_)) | None => unreachable!("invariant: nothing is put below a file"),
            };
        }
        directory.insert(name.into(), node)
    }

    /// Removes and returns the node at a path.
    pub(super) fn take(self: &mut Arc<Self>, path: &FilePath) -> Option<FileNode> {
        let mut segments: Vec<&str> = path.segments().collect();
        let name = segments.pop()?;
        let mut directory = self.entries_mut();
        for segment in segments {
            directory = match directory.get_mut(segment)? {
                FileNode::Directory(below) => below.entries_mut(),
                FileNode::File(_) => return None,
            };
        }
        directory.remove(name)
    }

    fn entries_mut(self: &mut Arc<Self>) -> &mut OrdMap<Arc<str>, FileNode> {
        let directory = Arc::make_mut(self);
        directory.summary = OnceLock::new();
        &mut directory.entries
    }
}

impl FromIterator<(Arc<str>, FileNode)> for Directory {
    fn from_iter<I: IntoIterator<Item = (Arc<str>, FileNode)>>(entries: I) -> Self {
        Self { entries: entries.into_iter().collect(), summary: OnceLock::new() }
    }
}

impl FileNode {
    /// Number and total size in bytes of the files here and below.
    pub(super) fn size(&self) -> (usize, u64) {
        match self {
            Self::File(file) => (1, file.bytes.len() as u64),
            Self::Directory(directory) => directory
                .entries
                .values()
                .map(Self::size)
                .fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1)),
        }
    }

    /// Number of levels of names below.
    pub(super) fn height(&self) -> usize {
        match self {
            Self::File(_) => 0,
            Self::Directory(directory) => {
                directory.entries.values().map(|node| 1 + node.height()).max().unwrap_or(0)
            }
        }
    }
}
