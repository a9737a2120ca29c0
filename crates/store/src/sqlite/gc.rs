//! Collecting what nobody can reach any more.
//!
//! First everything is marked that has to stay, in one state of the store and without disturbing anybody. Then, in one
//! transaction, what was written meanwhile is marked too, and the rest is deleted: a collection happens or it does not.
//!
//! A root that a record names and that retention throws away leaves its two names behind, so that whoever asks for it later
//! learns that it was pruned. Everything else that goes was named by nobody but such roots, or by nobody at all.
//!
//! Between capturing files and appending their root, a session in another process may count on objects that are deleted just
//! then. Each collection therefore has a number, and an append by a session that was claimed before the latest one looks
//! whether all that its new trees name is still there (`append`).

use std::collections::{BTreeMap, HashMap, HashSet};

use backstitch_core::crash_point;
use backstitch_core::id::SessionId;
use backstitch_core::journal::{Position, WorkspaceRoot};
use backstitch_core::object::{ObjectId, ObjectKind};
use backstitch_core::ports::StoreError;
use rusqlite::Connection;
use rusqlite::types::ValueRef;

use super::error::failed;
use super::objects::{self, PRUNED};
use super::reach::{Named, Walk};
use super::read::session_in;
use super::retention::{Files, Retention};
use super::writer::transaction;
use super::{SqliteStore, inbox};

/// Whether garbage is collected or only counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Collect {
    /// Only say what would go.
    DryRun,
    /// Throw it away.
    Now,
}

/// What a collection threw away, or would throw away.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GcReport {
    /// What goes, by session and kind.
    pub freed: Vec<Freed>,
    /// How many objects stay.
    pub kept_objects: u64,
    /// How many bytes they take.
    pub kept_bytes: u64,
    /// How many workspace roots can no longer be gone back to.
    pub pruned_roots: u64,
}

impl GcReport {
    /// How many bytes go in all.
    pub fn freed_bytes(&self) -> u64 {
        self.freed.iter().map(|freed| freed.bytes).sum()
    }
}

/// A part of what a collection throws away.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Freed {
    /// The session whose old boundaries needed it, or `None` for what nobody needed. What several sessions needed counts for
    /// the first of them.
    pub session: Option<SessionId>,
    /// What kind of objects it is.
    pub kind: ObjectKind,
    /// How many.
    pub objects: u64,
    /// How many bytes they take, as they are stored.
    pub bytes: u64,
}

/// How often garbage was collected.
pub(super) fn generation(connection: &Connection) -> Result<i64, StoreError> {
    let sql = "SELECT value FROM counters WHERE name = 'generation'";
    connection.prepare_cached(sql).and_then(|mut sql| sql.query_row([], |row| row.get(0))).map_err(failed)
}

impl SqliteStore {
    /// Throws away what retention does not keep and nobody can reach, or says what that would be. Space is given back to the
    /// disk. A store with damage is refused, because what is needed cannot be told: see [`verify`](Self::verify).
    ///
    /// This blocks, and while it deletes no other process can write.
    pub fn gc(&self, retention: Retention, collect: Collect) -> Result<GcReport, StoreError> {
        let (mut sessions, seen) = self.readers.at_once(|connection| {
            let mut walk = Walk::new(connection);
            let mut sessions = Sessions::default();
            sessions.read_on(connection, &mut walk)?;
            sessions.divide(retention, &mut walk)?;
            Ok((sessions, walk.seen))
        })?;
        crash_point!("gc.marked");
        match collect {
            Collect::DryRun => self.readers.at_once(|connection| {
                let walk = Walk::resume(connection, seen);
                sessions.sweep(connection, walk, &mut |_| Ok(()))
            }),
            Collect::Now => self.writer()?.alone(|connection| {
                let report = transaction(connection, || {
                    let mut walk = Walk::resume(connection, seen);
                    sessions.read_on(connection, &mut walk)?;
                    sessions.divide(retention, &mut walk)?;
                    let mut delete =
                        connection.prepare_cached("DELETE FROM objects WHERE id = ?1").map_err(failed)?;
                    let report = sessions.sweep(connection, walk, &mut |going| match going {
                        Going::Root(id) => objects::leave_mark(connection, id, PRUNED),
                        Going::Below(id) => delete.execute([&id.as_bytes()[..]]).map_err(failed).map(drop),
                    })?;
                    crash_point!("gc.swept");
                    if !report.freed.is_empty() {
                        let sql = "UPDATE counters SET value = value + 1 WHERE name = 'generation'";
                        connection.execute(sql, []).map_err(failed)?;
                    }
                    Ok(report)
                })?;
                give_back(connection)?;
                Ok(report)
            }),
        }
    }
}

/// Gives free pages back to the disk, as far as nobody is in the way.
fn give_back(connection: &Connection) -> Result<(), StoreError> {
    connection.execute_batch("PRAGMA incremental_vacuum").map_err(failed)?;
    match connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())) {
        // Somebody reads. The next checkpoint will do it.
        Err(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy) => Ok(()),
        result => result.map_err(failed),
    }
}

enum Going {
    /// A name that a record holds.
    Root(ObjectId),
    /// Anything else.
    Below(ObjectId),
}

/// All journals, as far as they tell what has to stay.
#[derive(Default)]
struct Sessions {
    /// By number, so in the order of creation.
    all: BTreeMap<i64, (SessionId, Files)>,
    /// The roots that go.
    going: Vec<(SessionId, WorkspaceRoot)>,
}

impl Sessions {
    /// Reads what is new in all journals and inboxes, and marks all that it names but roots.
    fn read_on(&mut self, connection: &Connection, walk: &mut Walk<'_>) -> Result<(), StoreError> {
        let mut sql = connection.prepare("SELECT id, session FROM sessions ORDER BY id").map_err(failed)?;
        let mut rows = sql.query([]).map_err(failed)?;
        while let Some(row) = rows.next().map_err(failed)? {
            let number: i64 = row.get(0).map_err(failed)?;
            let session = session_in(row.get_ref(1).map_err(failed)?)?;
            let (_, files) = self.all.entry(number).or_insert_with(|| (session, Files::default()));
            files.read_on(connection, session, number, |named| {
                named.objects.iter().try_for_each(|id| walk.add(*id))
            })?;
        }
        for text in inbox::texts(connection)? {
            let named = Named::in_text(&text);
            named.objects.into_iter().try_for_each(|id| walk.add(id))?;
            named.roots.into_iter().try_for_each(|root| walk.add_root(root))?;
        }
        Ok(())
    }

    /// Marks the roots that stay, and notes those that go.
    fn divide(&mut self, retention: Retention, walk: &mut Walk<'_>) -> Result<(), StoreError> {
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

    /// Passes on what was not marked, and counts it.
    fn sweep(
        &mut self,
        connection: &Connection,
        marked: Walk<'_>,
        each: &mut dyn FnMut(Going) -> Result<(), StoreError>,
    ) -> Result<GcReport, StoreError> {
        let seen = marked.seen;
        let mut report = GcReport::default();
        let mut roots = HashSet::new();
        // Who needed what goes: each session's roots are walked once more, over what was not marked.
        let mut needed: HashMap<ObjectId, SessionId> = HashMap::new();
        let mut walk = Walk::resume(connection, seen.clone());
        for (session, root) in &self.going {
            if seen.contains(&root.tree) && seen.contains(&root.manifest) {
                continue;
            }
            let is_new = roots.insert(root.tree) | roots.insert(root.manifest);
            report.pruned_roots += u64::from(is_new);
            walk.add_root(*root)?;
            needed.extend(walk.fresh.drain(..).map(|id| (id, *session)));
        }
        let mut freed: BTreeMap<(Option<SessionId>, ObjectKind), (u64, u64)> = BTreeMap::new();
        for (id, kind, bytes) in all_stored(connection)? {
            if seen.contains(&id) {
                report.kept_objects += 1;
                report.kept_bytes += bytes;
                continue;
            }
            let count = freed.entry((needed.get(&id).copied(), kind)).or_default();
            *count = (count.0 + 1, count.1 + bytes);
            each(match roots.contains(&id) {
                true => Going::Root(id),
                false => Going::Below(id),
            })?;
        }
        let freed = freed.into_iter();
        report.freed = freed
            .map(|((session, kind), (objects, bytes))| Freed { session, kind, objects, bytes })
            .collect();
        Ok(report)
    }
}

/// All objects that have content, with kind and stored size.
fn all_stored(connection: &Connection) -> Result<Vec<(ObjectId, ObjectKind, u64)>, StoreError> {
    let sql = "SELECT id, kind, length(content) FROM objects WHERE content IS NOT NULL ORDER BY number";
    let mut sql = connection.prepare(sql).map_err(failed)?;
    let mut rows = sql.query([]).map_err(failed)?;
    let mut all = Vec::new();
    while let Some(row) = rows.next().map_err(failed)? {
        let id = id_in(row.get_ref(0).map_err(failed)?)?;
        let (kind, bytes): (i64, i64) = (row.get(1).map_err(failed)?, row.get(2).map_err(failed)?);
        all.push((id, objects::kind_of(kind).unwrap_or(ObjectKind::Blob), bytes.cast_unsigned()));
    }
    Ok(all)
}

/// The id of an object that is stored as bytes.
pub(super) fn id_in(value: ValueRef<'_>) -> Result<ObjectId, StoreError> {
    let bytes = value.as_blob().ok().and_then(|bytes| bytes.try_into().ok());
    let bytes = bytes
        .ok_or_else(|| StoreError::Corrupt { source: "an object is stored under what is no id".into() })?;
    Ok(ObjectId::from_bytes(bytes))
}
