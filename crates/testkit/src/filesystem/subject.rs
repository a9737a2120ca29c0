//! The filesystems and workspaces under test.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use backstitch_core::object::{Object, ObjectId};
use backstitch_core::ports::{
    Access, Filesystem, FilesystemLimits, Objects, Workspace, WorkspaceCapture, WriteMode,
};
use backstitch_core::session::BoxError;
use backstitch_filesystem::FilePath;

use super::tree::{Leaf, Tree};

/// How to open a subject.
#[derive(Debug, Clone)]
pub struct Setup {
    /// Read-only or writable.
    pub access: Access,
    /// Limits on sizes and paths.
    pub limits: FilesystemLimits,
    /// The initial files.
    pub tree: Tree,
    /// The object store of its roots.
    pub objects: Arc<StoredObjects>,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            access: Access::ReadWrite,
            limits: FilesystemLimits::default(),
            tree: Tree::new(),
            objects: Arc::default(),
        }
    }
}

/// An implementation, opened on its own files. Dropping it deletes them.
pub trait Subject {
    /// The files, as tools see them.
    fn filesystem(&self) -> Arc<dyn Filesystem>;

    /// The workspace over the same files.
    fn workspace(&self) -> &dyn Workspace;

    /// Makes a file executable or not, as a shell could.
    fn set_executable(&self, path: &FilePath, executable: bool);

    /// Writes a file or makes a directory, as a shell could: tools may refuse some paths, such as repositories.
    fn place(&self, path: &FilePath, leaf: &Leaf) {
        let filesystem = self.filesystem();
        match leaf {
            Leaf::EmptyDirectory => filesystem.make_directory(path).expect("a directory can be made"),
            Leaf::File { bytes, executable } => {
                filesystem.write_bytes(path, bytes, WriteMode::Overwrite).expect("a file can be written");
                self.set_executable(path, *executable);
            }
        }
    }
}

/// Opens a subject that shares only its objects with earlier ones.
pub type Factory = fn(Setup) -> Box<dyn Subject>;

/// Objects in memory.
#[derive(Debug, Default)]
pub struct StoredObjects {
    objects: Mutex<HashMap<ObjectId, Object>>,
}

impl StoredObjects {
    /// Stores the objects of a capture.
    pub fn store(&self, captured: &WorkspaceCapture) {
        self.insert(captured.objects.iter().cloned());
    }

    /// Stores objects.
    pub fn insert(&self, objects: impl IntoIterator<Item = Object>) {
        self.lock().extend(objects.into_iter().map(|object| (object.id(), object)));
    }

    /// Deletes an object.
    pub fn remove(&self, id: ObjectId) {
        self.lock().remove(&id);
    }

    /// The ids of all stored objects, sorted.
    pub fn ids(&self) -> Vec<ObjectId> {
        let mut ids: Vec<_> = self.lock().keys().copied().collect();
        ids.sort();
        ids
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<ObjectId, Object>> {
        self.objects.lock().expect("no test panics while it holds this")
    }
}

impl Objects for StoredObjects {
    fn get(&self, id: ObjectId) -> Result<Option<Object>, BoxError> {
        Ok(self.lock().get(&id).cloned())
    }

    fn contains(&self, id: ObjectId) -> Result<bool, BoxError> {
        Ok(self.lock().contains_key(&id))
    }
}

/// Writes a tree into a writable subject.
pub(super) fn fill(subject: &dyn Subject, tree: &Tree) {
    for (path, leaf) in tree {
        subject.place(&FilePath::new(path).expect("trees hold paths"), leaf);
    }
}
