//! Objects of a root that are read ahead, because their store is behind a network.
//!
//! A restore asks for one object after the other. While a root is prepared ([`ObjectsAhead::prepare`]), its trees are in memory, the
//! state of each object is known, and content is read in batches, in the order in which the restore has planned it. After
//! [`ObjectsAhead::finish`] everything is read from the store again.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use backstitch_core::journal::WorkspaceRoot;
use backstitch_core::object::{Object, ObjectId};
use backstitch_core::ports::{ObjectFacts, Objects, StoredMark, WorkspaceError};
use backstitch_core::session::BoxError;
use backstitch_filesystem::format::{Manifest, TreeMode, damaged, decode_tree};

/// Most bytes of content that are read at once, unless one object is larger.
const BATCH_BYTES: u64 = 8 << 20;

/// Most objects that are read at once.
const BATCH_OBJECTS: usize = 2_000;

/// Most objects whose states are asked for at once.
const STATES: usize = 20_000;

/// Stored objects, with those of one root read ahead.
pub struct ObjectsAhead {
    stored: Arc<dyn Objects>,
    prepared: Mutex<Option<PreparedObjects>>,
}

/// What is known about the objects of a root.
#[derive(Default)]
struct PreparedObjects {
    trees: HashMap<ObjectId, Object>,
    /// The states of all objects; `None` for those that are not stored.
    states: HashMap<ObjectId, Option<ObjectFacts>>,
    /// Objects that a restore has planned to write, in order, and their places in it.
    planned: Vec<ObjectId>,
    places: HashMap<ObjectId, usize>,
    /// The last batch.
    batch: HashMap<ObjectId, Object>,
}

impl PreparedObjects {
    fn plan(&mut self, id: ObjectId) {
        if let std::collections::hash_map::Entry::Vacant(place) = self.places.entry(id) {
            place.insert(self.planned.len());
            self.planned.push(id);
        }
    }

    /// Returns the objects to read with one that is planned.
    fn batch_from(&self, place: usize) -> Vec<ObjectId> {
        let (mut ids, mut bytes) = (Vec::new(), 0_u64);
        for id in &self.planned[place..] {
            let length = self.states.get(id).copied().flatten().and_then(|known| known.length);
            bytes = bytes.saturating_add(length.unwrap_or_default());
            if !ids.is_empty() && (bytes > BATCH_BYTES || ids.len() == BATCH_OBJECTS) {
                break;
            }
            ids.push(*id);
        }
        ids
    }
}

impl ObjectsAhead {
    /// Creates a reader of stored objects.
    pub fn new(stored: Arc<dyn Objects>) -> Self {
        Self { stored, prepared: Mutex::default() }
    }

    /// Reads the trees of a root, level by level, and asks for the states of all of its objects.
    pub fn prepare(&self, root: WorkspaceRoot) -> Result<(), WorkspaceError> {
        let manifest = Manifest::load(&*self.stored, root.manifest)?;
        let refused = manifest.refused.values().map(|entry| (entry.mode, entry.object));
        let first = std::iter::once(root.tree).chain(manifest.modes).map(|id| (TreeMode::Directory, id));
        let (mut seen, mut others) = (HashSet::new(), vec![root.manifest]);
        let mut prepared = PreparedObjects::default();
        let mut level: Vec<(TreeMode, ObjectId)> = first.chain(refused).collect();
        while !level.is_empty() {
            level.retain(|(_, id)| seen.insert(*id));
            let (trees, rest): (Vec<_>, Vec<_>) =
                level.drain(..).partition(|(mode, _)| *mode == TreeMode::Directory);
            others.extend(rest.into_iter().map(|(_, id)| id));
            let trees: Vec<ObjectId> = trees.into_iter().map(|(_, id)| id).collect();
            for some in trees.chunks(BATCH_OBJECTS) {
                for tree in self.stored.get_many(some).map_err(WorkspaceError::Objects)? {
                    let id = tree.id();
                    let entries =
                        decode_tree(tree.bytes()).map_err(|error| damaged(id, error.to_string()))?;
                    level.extend(entries.into_iter().map(|entry| (entry.mode, entry.object)));
                    prepared.trees.insert(id, tree);
                }
            }
        }
        for some in others.chunks(STATES) {
            prepared.states.extend(some.iter().map(|id| (*id, None)));
            let found = self.stored.find_many(some).map_err(WorkspaceError::Objects)?;
            prepared.states.extend(found.into_iter().map(|known| (known.id, Some(known))));
        }
        *self.prepared() = Some(prepared);
        Ok(())
    }

    /// Forgets what was read.
    pub fn finish(&self) {
        *self.prepared() = None;
    }

    fn prepared(&self) -> MutexGuard<'_, Option<PreparedObjects>> {
        self.prepared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the state of an object of the prepared root; the inner `None` if it is not stored.
    fn state(&self, id: ObjectId) -> Option<Option<ObjectFacts>> {
        let prepared = self.prepared();
        let prepared = prepared.as_ref()?;
        if let Some(tree) = prepared.trees.get(&id) {
            return Some(Some(ObjectFacts { id, length: Some(tree.bytes().len() as u64) }));
        }
        prepared.states.get(&id).copied()
    }
}

impl Objects for ObjectsAhead {
    fn get(&self, id: ObjectId) -> Result<Option<Object>, BoxError> {
        if let Some(prepared) = &mut *self.prepared() {
            if let Some(known) = prepared.trees.get(&id).or_else(|| prepared.batch.get(&id)) {
                return Ok(Some(known.clone()));
            }
            if let Some(place) = prepared.places.get(&id) {
                let found = self.stored.get_many(&prepared.batch_from(*place))?;
                prepared.batch = found.into_iter().map(|object| (object.id(), object)).collect();
                return Ok(prepared.batch.get(&id).cloned());
            }
        }
        self.stored.get(id)
    }

    fn contains(&self, id: ObjectId) -> Result<bool, BoxError> {
        match self.state(id) {
            Some(known) => Ok(known.is_some_and(|known| known.length.is_some())),
            None => self.stored.contains(id),
        }
    }

    fn length(&self, id: ObjectId) -> Result<Option<u64>, BoxError> {
        match self.state(id) {
            Some(known) => Ok(known.and_then(|known| known.length)),
            None => self.stored.length(id),
        }
    }

    /// A restore asks this about each object that it is going to write.
    fn is_redacted(&self, id: ObjectId) -> Result<bool, BoxError> {
        if let Some(prepared) = &mut *self.prepared() {
            prepared.plan(id);
        }
        match self.state(id) {
            Some(known) => Ok(known.is_some_and(|known| known.length.is_none())),
            None => self.stored.is_redacted(id),
        }
    }

    fn get_many(&self, ids: &[ObjectId]) -> Result<Vec<Object>, BoxError> {
        self.stored.get_many(ids)
    }

    fn find_many(&self, ids: &[ObjectId]) -> Result<Vec<ObjectFacts>, BoxError> {
        self.stored.find_many(ids)
    }

    fn mark(&self) -> Result<Option<StoredMark>, BoxError> {
        self.stored.mark()
    }

    fn keeps(&self, mark: &StoredMark) -> Result<bool, BoxError> {
        self.stored.keeps(mark)
    }
}
