//! The persistent tree below a [`MemoryFiles`](super::MemoryFiles).
//!
//! Files and directories are shared and never change; a change makes new directories along one path and shares the rest.
//! So a snapshot is a pointer, and what was once learnt about a directory (the id of its tree) is kept for as long as nothing
//! below it changes.

use std::sync::{Arc, OnceLock};

use backstitch_core::object::{Object, ObjectId};
use backstitch_core::time::Timestamp;
use imbl::OrdMap;

use crate::FilePath;
use crate::format::TreeMode;

/// A file or a directory.
#[derive(Debug, Clone)]
pub(super) enum FileNode {
    File(Arc<File>),
    Directory(Arc<Directory>),
}

/// A file.
#[derive(Debug)]
pub(super) struct File {
    pub(super) bytes: Arc<[u8]>,
    pub(super) executable: bool,
    pub(super) modified: Option<Timestamp>,
    blob: OnceLock<Object>,
}

/// A directory.
#[derive(Debug, Default)]
pub(super) struct Directory {
    entries: OrdMap<Arc<str>, FileNode>,
    summary: OnceLock<Summary>,
}

/// What is known of all that is below a directory.
#[derive(Debug, Clone, Copy)]
pub(super) struct Summary {
    /// The tree with all that git takes; none where that is nothing.
    pub(super) tree: Option<ObjectId>,
    /// Whether something is below that git does not take.
    pub(super) exceptional: bool,
}

/// What is at a path.
#[derive(Debug, Clone, Copy)]
pub(super) enum Lookup<'a> {
    File(&'a Arc<File>),
    Directory(&'a Arc<Directory>),
    Nothing,
    /// Something above the path is a file.
    BelowFile,
}

impl File {
    pub(super) fn new(bytes: Arc<[u8]>, executable: bool, modified: Option<Timestamp>) -> Self {
        Self { bytes, executable, modified, blob: OnceLock::new() }
    }

    /// A file whose content is an object already.
    pub(super) fn from_blob(blob: Object, executable: bool, modified: Option<Timestamp>) -> Self {
        Self { bytes: blob.bytes().clone(), executable, modified, blob: OnceLock::from(blob) }
    }

    /// The content as an object. It is hashed once.
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
    /// What was learnt is not taken along: a directory is cloned to be changed.
    fn clone(&self) -> Self {
        Self { entries: self.entries.clone(), summary: OnceLock::new() }
    }
}

impl PartialEq for FileNode {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::File(left), Self::File(right)) => Arc::ptr_eq(left, right) || left == right,
            (Self::Directory(left), Self::Directory(right)) => Arc::ptr_eq(left, right) || left == right,
            (Self::File(_), Self::Directory(_)) | (Self::Directory(_), Self::File(_)) => false,
        }
    }
}

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

    /// What it holds, by name.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&Arc<str>, &FileNode)> {
        self.entries.iter()
    }

    /// What is known of all below, once it was found out.
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

    /// Puts a node at a path, making the directories above it. Gives what was there. Nothing above may be a file, and the
    /// path may not be the root.
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

    /// Takes away what is at a path.
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
    /// How many files are here and below, and how many bytes they have.
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

    /// How many levels of names are below.
    pub(super) fn height(&self) -> usize {
        match self {
            Self::File(_) => 0,
            Self::Directory(directory) => {
                directory.entries.values().map(|node| 1 + node.height()).max().unwrap_or(0)
            }
        }
    }
}
