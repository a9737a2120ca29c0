//! Asks the store which objects it has, about many of them at a time: it may be behind a network.
//!
//! Objects wait in memory until the store is asked about them. Those that it has are dropped then, so that no more than one batch of
//! them is in memory. What an index says about the store is completed when all answers are known.

use backstitch_core::object::{Object, ObjectId};
use backstitch_core::ports::WorkspaceError;

use super::{Purpose, Scan};
use crate::host::index::DirIndex;

/// Most objects that the store is asked about at once.
const BATCH_OBJECTS: usize = 1_000;

/// Most bytes that wait for an answer, unless one object is larger.
const BATCH_BYTES: u64 = 8 << 20;

impl Scan<'_> {
    /// Adds an object to the capture, unless the store has it, which may turn out later.
    pub(crate) fn give(&mut self, object: Object) -> Result<ObjectId, WorkspaceError> {
        let id = object.id();
        if self.purpose == Purpose::Restore || self.stored.contains(&id) || !self.given.insert(id) {
            return Ok(id);
        }
        self.waiting_bytes += object.bytes().len() as u64;
        self.waiting.push(object);
        if self.waiting.len() >= BATCH_OBJECTS || self.waiting_bytes >= BATCH_BYTES {
            self.ask()?;
        }
        Ok(id)
    }

    /// Asks the store about the objects that wait, and adds those that it does not have to the capture.
    pub(crate) fn ask(&mut self) -> Result<(), WorkspaceError> {
        let mut ids: Vec<ObjectId> = self.waiting.iter().map(Object::id).collect();
        ids.sort_unstable();
        self.find(&ids)?;
        self.waiting_bytes = 0;
        for object in std::mem::take(&mut self.waiting) {
            if self.stored.contains(&object.id()) {
                continue;
            }
            let length = object.bytes().len() as u64;
            self.new_bytes += length;
            if self.new_bytes > self.limits.new_bytes {
                let limit = self.limits.new_bytes;
                let reason = format!(
                    "there are more than {limit} bytes of new content; exclude paths that need not be captured"
                );
                return Err(WorkspaceError::Limit { reason });
            }
            if let Some(left) = &mut self.limits.spend {
                *left = left.saturating_sub(length);
            }
            self.new.push(object);
        }
        Ok(())
    }

    /// Asks about the contents of an earlier scan that were not stored then. Files whose content the store has by now need not be read
    /// again.
    pub(crate) fn confirm(&mut self, previous: &mut DirIndex) -> Result<(), WorkspaceError> {
        let mut ids = Vec::new();
        previous.collect_unstored(&mut ids);
        ids.sort_unstable();
        ids.dedup();
        for some in ids.chunks(BATCH_OBJECTS) {
            self.find(some)?;
        }
        self.note_stored(previous);
        Ok(())
    }

    /// Notes in an index which objects the store has.
    pub(crate) fn note_stored(&mut self, node: &mut DirIndex) {
        if self.stored.is_empty() {
            return;
        }
        let (stored, lists) = (&self.stored, &self.lists);
        let has =
            |id: ObjectId| stored.contains(&id) && lists.get(&id).is_none_or(|list| stored.contains(list));
        self.confirmed += node.note_stored(&has);
    }

    fn find(&mut self, ids: &[ObjectId]) -> Result<(), WorkspaceError> {
        if ids.is_empty() {
            return Ok(());
        }
        let found = self.objects.find_many(ids).map_err(WorkspaceError::Objects)?;
        self.stored.extend(found.into_iter().filter(|known| known.length.is_some()).map(|known| known.id));
        Ok(())
    }
}
