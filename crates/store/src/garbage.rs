//! Garbage: which objects of a store nothing needs, however they are stored.

use std::collections::{BTreeMap, HashMap, HashSet};

use backstitch_core::id::SessionId;
use backstitch_core::journal::{Position, WorkspaceRoot};
use backstitch_core::object::{ObjectId, ObjectKind};
use backstitch_core::ports::{FreedSpace, GcReport, Retention, StoreError};

use crate::reach::{StoredObjects, Walk};
use crate::references::{References, below};
use crate::retention::Files;

/// Receives the texts of records with their positions.
pub(crate) type EachText<'a> = &'a mut dyn FnMut(Position, &str) -> Result<(), StoreError>;

/// The journals and objects of a store, for reading.
pub(crate) trait Journals: StoredObjects {
    /// All sessions with their numbers, in the order of their creation.
    fn numbered_sessions(&self) -> Result<Vec<(i64, SessionId)>, StoreError>;

    /// Passes the texts of a session's records from a position on, each verified.
    fn texts_from(&self, of: (i64, SessionId), from: Position, each: EachText<'_>) -> Result<(), StoreError>;

    /// The stored JSON of all items of all inboxes.
    fn inbox_texts(&self) -> Result<Vec<String>, StoreError>;

    /// All objects with content: id, kind and stored size.
    fn all_stored(&self) -> Result<Vec<(ObjectId, ObjectKind, u64)>, StoreError>;
}

/// An object that is deleted.
pub(crate) struct DeletedObject {
    pub(crate) id: ObjectId,
    /// Whether records name it, so that its row stays as a mark.
    pub(crate) leaves_mark: bool,
}

/// File boundaries of all sessions, and the roots that retention drops.
#[derive(Default)]
pub(crate) struct SessionFiles {
    /// By session number, which is the order of creation.
    all: BTreeMap<i64, (SessionId, Files)>,
    /// Roots to be pruned.
    going: Vec<(SessionId, WorkspaceRoot)>,
    /// Sessions that are not looked at.
    without: HashSet<SessionId>,
}

impl SessionFiles {
    /// Files of no session yet. These sessions are not looked at.
    pub(crate) fn without(without: HashSet<SessionId>) -> Self {
        Self { without, ..Self::default() }
    }

    /// Reads new records of all journals and inboxes, and marks the objects that they name, except for roots.
    pub(crate) fn read_on(&mut self, journals: &dyn Journals, walk: &mut Walk<'_>) -> Result<(), StoreError> {
        for (number, session) in journals.numbered_sessions()? {
            if self.without.contains(&session) {
                continue;
            }
            let (_, files) = self.all.entry(number).or_insert_with(|| (session, Files::default()));
            journals.texts_from((number, session), files.head, &mut |position, text| {
                files.add_text(session, position, text, |named| {
                    named.objects.iter().try_for_each(|id| walk.add(*id))
                })
            })?;
        }
        for text in journals.inbox_texts()? {
            let named = References::in_text(&text);
            named.objects.into_iter().try_for_each(|id| walk.add(id))?;
            named.roots.into_iter().try_for_each(|root| walk.add_root(root))?;
        }
        Ok(())
    }

    /// Marks the roots that stay and collects those to be pruned.
    pub(crate) fn divide(&mut self, retention: Retention, walk: &mut Walk<'_>) -> Result<(), StoreError> {
        let mut forks: HashMap<SessionId, Vec<Position>> = HashMap::new();
        for (parent, cut) in self.all.values().filter_map(|(_, files)| files.fork) {
            forks.entry(parent).or_default().push(cut);
        }
        self.going.clear();
        for (session, files) in self.all.values() {
            let cuts = forks.get(session).map_or(&[][..], Vec::as_slice);
            let (stay, go) = files.divide(retention, cuts);
            stay.into_iter().try_for_each(|root| walk.add_root(root))?;
            self.going.extend(go.into_iter().map(|root| (*session, root)));
        }
        Ok(())
    }

    /// Collects all unmarked objects in the order of their deletion.
    pub(crate) fn sweep(&self, journals: &dyn Journals, marked: &Walk<'_>) -> Result<Sweep, StoreError> {
        let seen = &marked.seen;
        let mut sweep = Sweep::default();
        // Attribute garbage to sessions: walk the roots of each once more, over unmarked objects only.
        let mut needed: HashMap<ObjectId, SessionId> = HashMap::new();
        let mut walk = Walk::resume(journals, seen.clone());
        for (session, root) in &self.going {
            if seen.contains(&root.tree) && seen.contains(&root.manifest) {
                continue;
            }
            let is_new = sweep.roots.insert(root.tree) | sweep.roots.insert(root.manifest);
            sweep.pruned_roots += u64::from(is_new);
            walk.add_root(*root)?;
            needed.extend(walk.fresh.drain(..).map(|id| (id, *session)));
        }
        for (id, kind, bytes) in journals.all_stored()? {
            if seen.contains(&id) {
                sweep.kept = (sweep.kept.0 + 1, sweep.kept.1 + bytes);
            } else {
                sweep.going.push(Garbage { id, kind, bytes, session: needed.get(&id).copied() });
            }
        }
        sweep.put_in_order(journals)?;
        Ok(sweep)
    }
}

/// An object to be deleted.
struct Garbage {
    id: ObjectId,
    kind: ObjectKind,
    bytes: u64,
    /// First session that needed it.
    session: Option<SessionId>,
}

/// Objects to be deleted, over one or more transactions. No object is deleted before those that name it, so
/// every stored object is complete after each transaction.
#[derive(Default)]
pub(crate) struct Sweep {
    /// Ids that records name. Their rows stay, marked as pruned.
    roots: HashSet<ObjectId>,
    pruned_roots: u64,
    going: Vec<Garbage>,
    /// Number of objects of `going` that are done.
    done: usize,
    /// Number and stored bytes of the objects that stay.
    kept: (u64, u64),
}

impl Sweep {
    /// Sorts roots first, then trees and commits, each before the objects it names, and plain content last.
    fn put_in_order(&mut self, objects: &dyn StoredObjects) -> Result<(), StoreError> {
        let inner: Vec<ObjectId> =
            self.going.iter().filter(|one| one.kind != ObjectKind::Blob).map(|one| one.id).collect();
        let mut named: HashMap<ObjectId, Vec<ObjectId>> = HashMap::new();
        let mut namers: HashMap<ObjectId, usize> = inner.iter().map(|id| (*id, 0)).collect();
        for id in &inner {
            let Some(object) = objects.stored_object(*id)? else { continue };
            let mut below = below(&object)?;
            below.retain(|id| namers.contains_key(id));
            for id in &below {
                namers.entry(*id).and_modify(|count| *count += 1);
            }
            named.insert(*id, below);
        }
        let mut free: Vec<ObjectId> = inner.iter().filter(|id| namers[id] == 0).copied().collect();
        let mut places: HashMap<ObjectId, usize> = HashMap::new();
        while let Some(id) = free.pop() {
            places.insert(id, places.len());
            for below in named.remove(&id).unwrap_or_default() {
                let count = namers.entry(below).or_default();
                *count = count.saturating_sub(1);
                if *count == 0 {
                    free.push(below);
                }
            }
        }
        let roots = &self.roots;
        self.going.sort_by_key(|one| {
            let is_root = roots.contains(&one.id);
            (!is_root, one.kind == ObjectKind::Blob, places.get(&one.id).copied().unwrap_or_default())
        });
        Ok(())
    }

    /// Returns the next objects to delete, up to `limit` bytes, without those that have become reachable.
    pub(crate) fn next_objects(&mut self, seen: &HashSet<ObjectId>, limit: u64) -> Vec<DeletedObject> {
        let (mut bytes, mut deleted) = (0, Vec::new());
        while let Some(next) = self.going.get(self.done) {
            if !deleted.is_empty() && bytes + next.bytes > limit {
                break;
            }
            if seen.contains(&next.id) {
                self.kept = (self.kept.0 + 1, self.kept.1 + next.bytes);
                self.going.remove(self.done);
                continue;
            }
            deleted.push(DeletedObject { id: next.id, leaves_mark: self.roots.contains(&next.id) });
            bytes += next.bytes;
            self.done += 1;
        }
        deleted
    }

    pub(crate) fn is_done(&self) -> bool {
        self.done == self.going.len()
    }

    pub(crate) fn report(&self) -> GcReport {
        let mut freed: BTreeMap<(Option<SessionId>, ObjectKind), (u64, u64)> = BTreeMap::new();
        for one in &self.going {
            let count = freed.entry((one.session, one.kind)).or_default();
            *count = (count.0 + 1, count.1 + one.bytes);
        }
        let freed = freed.into_iter();
        let freed =
            freed.map(|((session, kind), (objects, bytes))| FreedSpace { session, kind, objects, bytes });
        GcReport {
            freed: freed.collect(),
            kept_objects: self.kept.0,
            kept_bytes: self.kept.1,
            pruned_roots: self.pruned_roots,
        }
    }
}
