//! Garbage collection: deletes unreachable objects.
//!
//! The first phase marks everything that must stay, in one read snapshot and without blocking writers. Then,
//! in transactions of limited size, the collection marks objects that were written since then and deletes the
//! rest, each object after those that name it. An interrupted collection leaves a store in which every object
//! is complete; the next one finishes the work.
//!
//! A root that a record names and that retention prunes leaves its two ids behind, so that a later read
//! reports `Pruned`. All other deleted objects were named only by such roots, or not at all.
//!
//! Between capturing files and appending their root, a session in another process may rely on objects that
//! are deleted at that moment. Each collection therefore increments a counter, and an append by a session
//! that was claimed before the latest collection checks that all references of its new trees still exist
//! (`append`).

use std::collections::{BTreeMap, HashMap, HashSet};

use backstitch_core::crash_point;
use backstitch_core::id::SessionId;
use backstitch_core::journal::{Position, WorkspaceRoot};
use backstitch_core::object::{ObjectId, ObjectKind};
use backstitch_core::ports::{FreedSpace, GcMode, GcReport, Retention, StoreError};
use rusqlite::Connection;

use super::erase::{self, OverwriteMode};
use super::error::Failure;
use super::objects::{self, Presence, all_stored};
use super::reach::Walk;
use super::read::numbered_sessions;
use super::retention::Files;
use super::store::SqliteStore;
use super::{generation, inbox};
use crate::references::{References, below};

impl SqliteStore {
    /// Deletes all objects that retention does not keep and that are not reachable, or only reports them, and
    /// returns free space to the disk. Fails on a damaged store, because reachability cannot be determined
    /// there: see [`verify`](Self::verify).
    ///
    /// This blocks. Other processes can write between its transactions, each of which is short.
    pub fn gc(&self, retention: Retention, collect: GcMode) -> Result<GcReport, StoreError> {
        self.collect_without(retention, collect, &HashSet::new())
    }

    /// The same while freed space is overwritten.
    pub(super) fn collect_overwriting(&self, retention: Retention) -> Result<GcReport, StoreError> {
        let writer = self.writer()?;
        writer.alone(|connection| erase::overwrite(connection, OverwriteMode::On))?;
        let collected = self.gc(retention, GcMode::Now);
        writer.alone(|connection| erase::overwrite(connection, OverwriteMode::Off))?;
        collected
    }

    /// The same as if these sessions did not exist.
    pub(super) fn collect_without(
        &self,
        retention: Retention,
        collect: GcMode,
        without: &HashSet<SessionId>,
    ) -> Result<GcReport, StoreError> {
        let (mut sessions, seen) = self.readers.at_once(|connection| {
            let mut walk = Walk::new(connection);
            let mut sessions = Sessions { without: without.clone(), ..Sessions::default() };
            sessions.read_on(connection, &mut walk)?;
            sessions.divide(retention, &mut walk)?;
            Ok((sessions, walk.seen))
        })?;
        crash_point!("gc.marked");
        if collect == GcMode::DryRun {
            return self.readers.at_once(|connection| {
                let walk = Walk::resume(connection, seen);
                let sweep = sessions.sweep(connection, &walk)?;
                Ok(sweep.report())
            });
        }
        let (writer, limit) = (self.writer()?, self.options.transaction_bytes);
        let mut seen = Some(seen);
        let mut sweep: Option<Sweep> = None;
        loop {
            let is_done = writer.transact(|connection| {
                // Records that were written since the first phase may need objects that were about to be
                // deleted.
                let mut walk = Walk::resume(connection, seen.take().unwrap_or_default());
                sessions.read_on(connection, &mut walk)?;
                sessions.divide(retention, &mut walk)?;
                let sweep = match &mut sweep {
                    Some(sweep) => sweep,
                    None => sweep.insert(sessions.sweep(connection, &walk)?),
                };
                let deleted = sweep.delete_some(connection, &walk.seen, limit)?;
                crash_point!("gc.swept");
                if deleted > 0 {
                    generation::increment(connection)?;
                }
                seen = Some(walk.seen);
                Ok(sweep.is_done())
            })?;
            if is_done {
                break;
            }
        }
        writer.alone(|connection| return_pages(connection, limit))?;
        Ok(sweep.map(|sweep| sweep.report()).unwrap_or_default())
    }
}

/// Returns free pages to the disk in steps, as far as no reader prevents it.
fn return_pages(connection: &Connection, limit: u64) -> Result<(), Failure> {
    let number = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let page = number("page_size")?.max(1);
    let pages = (i64::try_from(limit).unwrap_or(i64::MAX) / page).max(1);
    let mut free = number("freelist_count")?;
    while free > 0 {
        connection.execute_batch(&format!("PRAGMA incremental_vacuum({pages})"))?;
        let left = number("freelist_count")?;
        if left >= free {
            break;
        }
        free = left;
        if free > 0 {
            // Keeps the log short. Pages that cannot be copied now are copied later.
            let _ = connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
        }
    }
    match connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())) {
        // A reader prevents it; the next checkpoint will truncate the log.
        Err(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy) => Ok(()),
        result => Ok(result?),
    }
}

/// File boundaries of all sessions, and the roots that retention drops.
#[derive(Default)]
struct Sessions {
    /// By session number, which is the order of creation.
    all: BTreeMap<i64, (SessionId, Files)>,
    /// Roots to be pruned.
    going: Vec<(SessionId, WorkspaceRoot)>,
    /// Sessions that are not looked at.
    without: HashSet<SessionId>,
}

impl Sessions {
    /// Reads new records of all journals and inboxes, and marks the objects that they name, except for roots.
    fn read_on(&mut self, connection: &Connection, walk: &mut Walk<'_>) -> Result<(), Failure> {
        for (number, session) in numbered_sessions(connection)? {
            if self.without.contains(&session) {
                continue;
            }
            let (_, files) = self.all.entry(number).or_insert_with(|| (session, Files::default()));
            files.read_on(connection, session, number, |named| {
                named.objects.iter().try_for_each(|id| walk.add(*id))
            })?;
        }
        for text in inbox::texts(connection)? {
            let named = References::in_text(&text);
            named.objects.into_iter().try_for_each(|id| walk.add(id))?;
            named.roots.into_iter().try_for_each(|root| walk.add_root(root))?;
        }
        Ok(())
    }

    /// Marks the roots that stay and collects those to be pruned.
    fn divide(&mut self, retention: Retention, walk: &mut Walk<'_>) -> Result<(), Failure> {
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
    fn sweep(&self, connection: &Connection, marked: &Walk<'_>) -> Result<Sweep, Failure> {
        let seen = &marked.seen;
        let mut sweep = Sweep::default();
        // Attribute garbage to sessions: walk the roots of each once more, over unmarked objects only.
        let mut needed: HashMap<ObjectId, SessionId> = HashMap::new();
        let mut walk = Walk::resume(connection, seen.clone());
        for (session, root) in &self.going {
            if seen.contains(&root.tree) && seen.contains(&root.manifest) {
                continue;
            }
            let is_new = sweep.roots.insert(root.tree) | sweep.roots.insert(root.manifest);
            sweep.pruned_roots += u64::from(is_new);
            walk.add_root(*root)?;
            needed.extend(walk.fresh.drain(..).map(|id| (id, *session)));
        }
        for (id, kind, bytes) in all_stored(connection)? {
            if seen.contains(&id) {
                sweep.kept = (sweep.kept.0 + 1, sweep.kept.1 + bytes);
            } else {
                sweep.going.push(Garbage { id, kind, bytes, session: needed.get(&id).copied() });
            }
        }
        sweep.put_in_order(connection)?;
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
struct Sweep {
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
    fn put_in_order(&mut self, connection: &Connection) -> Result<(), Failure> {
        let inner: Vec<ObjectId> =
            self.going.iter().filter(|one| one.kind != ObjectKind::Blob).map(|one| one.id).collect();
        let mut named: HashMap<ObjectId, Vec<ObjectId>> = HashMap::new();
        let mut namers: HashMap<ObjectId, usize> = inner.iter().map(|id| (*id, 0)).collect();
        for id in &inner {
            let Some(object) = objects::get(connection, *id)? else { continue };
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

    /// Deletes the next objects, up to `limit` bytes, and skips those that have become reachable. Returns the
    /// number of deleted objects.
    fn delete_some(
        &mut self,
        connection: &Connection,
        seen: &HashSet<ObjectId>,
        limit: u64,
    ) -> Result<usize, Failure> {
        let mut delete = connection.prepare_cached("DELETE FROM objects WHERE id = ?1")?;
        let (mut bytes, mut deleted) = (0, 0);
        while let Some(next) = self.going.get(self.done) {
            if deleted > 0 && bytes + next.bytes > limit {
                break;
            }
            if seen.contains(&next.id) {
                self.kept = (self.kept.0 + 1, self.kept.1 + next.bytes);
                self.going.remove(self.done);
                continue;
            }
            if self.roots.contains(&next.id) {
                objects::leave_mark(connection, next.id, Presence::Pruned)?;
            } else {
                delete.execute([&next.id.as_bytes()[..]])?;
            }
            (bytes, deleted) = (bytes + next.bytes, deleted + 1);
            self.done += 1;
        }
        Ok(deleted)
    }

    fn is_done(&self) -> bool {
        self.done == self.going.len()
    }

    fn report(&self) -> GcReport {
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
