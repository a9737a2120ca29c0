//! What is put to the test.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use backstitch_core::object::{Object, ObjectId};
use backstitch_core::ports::{
    Access, Filesystem, FilesystemLimits, Objects, Workspace, WorkspaceCapture, WriteMode,
};
use backstitch_core::session::BoxError;
use backstitch_filesystem::FilePath;

use super::tree::{Leaf, Tree};

/// How a subject is to be opened.
#[derive(Debug, Clone)]
pub struct Setup {
    /// Whether it may be written to.
    pub access: Access,
    /// What it allows.
    pub limits: FilesystemLimits,
    /// What it holds from the start.
    pub tree: Tree,
    /// Where the objects of its roots are.
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

/// An implementation, opened on files of its own. Dropping it takes them away.
pub trait Subject {
    /// The files, as tools see them.
    fn filesystem(&self) -> Arc<dyn Filesystem>;

    /// The workspace over the same files.
    fn workspace(&self) -> &dyn Workspace;

    /// Makes a file executable or not, as a shell could.
    fn set_executable(&self, path: &FilePath, executable: bool);
}

/// Opens subjects.
pub trait Factory {
    /// A subject that shares nothing with those opened before but its objects.
    fn open(&self, setup: Setup) -> Box<dyn Subject>;
}

impl<F: Fn(Setup) -> Box<dyn Subject>> Factory for F {
    fn open(&self, setup: Setup) -> Box<dyn Subject> {
        self(setup)
    }
}

/// Objects in memory.
#[derive(Debug, Default)]
pub struct StoredObjects {
    objects: Mutex<HashMap<ObjectId, Object>>,
}

impl StoredObjects {
    /// Stores what was captured.
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

    /// The ids of all that is stored, sorted.
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

/// Writes a tree into a subject that may be written to.
pub(super) fn fill(subject: &dyn Subject, tree: &Tree) {
    let filesystem = subject.filesystem();
    for (path, leaf) in tree {
        let path = FilePath::new(path).expect("trees hold paths");
        match leaf {
            Leaf::EmptyDirectory => filesystem.make_directory(&path).expect("a directory can be made"),
            Leaf::File { bytes, executable } => {
                filesystem.write_bytes(&path, bytes, WriteMode::Overwrite).expect("a file can be written");
                subject.set_executable(&path, *executable);
            }
        }
    }
}
