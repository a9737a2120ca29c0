//! Removal of sessions.
//!
//! The first transaction of a removal deletes the session's entry, its snapshot, summary and inbox, and notes
//! the removal with the number of the session. From then on the session does not exist. Its records follow in
//! transactions of limited size, and the note loses the number with the last of them; until then the number
//! is given to no other session. Objects that only the removed sessions needed are collected as garbage, and
//! so are marks of pruned, lost or redacted objects that no record names any more. Finally the store's files
//! are rebuilt (`erase`).
//!
//! Repeating an interrupted removal, of the same or of another session, completes it. The claim of a removed
//! session stays without an owner: a fence is never issued twice, even if a session with the same id is
//! created again.

use std::collections::{BTreeSet, HashSet};

use backstitch_core::crash_point;
use backstitch_core::id::SessionId;
use backstitch_core::journal::Position;
use backstitch_core::object::{ObjectId, ObjectKind};
use backstitch_core::ports::{
    Erasure, ErasureMode, GcMode, Removal, RemovalReport, RemovedSession, Retention, StoreError,
};
use backstitch_core::time::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, params};

use super::append::{end_of, first_key, last_key, number_of};
use super::contents::SqliteContents;
use super::erase::{erase, overwriting};
use super::error::Failure;
use super::gc::{self, id_in};
use super::read::session_in;
use super::verify::{chain_of, sessions};
use super::writer::transaction;
use super::{SqliteStore, objects, read, redactions};
use crate::family::is_open;
use crate::redaction::Contents as _;
use crate::references::{References, below, named_in_manifest};

impl SqliteStore {
    /// Lists the sessions that were removed, and not created again.
    pub fn removed(&self) -> Result<Vec<RemovedSession>, StoreError> {
        self.readers.with(all_removed)
    }

    pub(super) async fn remove_sessions(&self, removal: Removal) -> Result<RemovalReport, StoreError> {
        if removal.sessions.is_empty() {
            return Ok(RemovalReport::default());
        }
        if removal.mode == ErasureMode::DryRun {
            let removed = self.readers.at_once(|connection| removed_with(connection, &removal))?;
            let all: HashSet<SessionId> = removed.iter().map(|one| one.session).collect();
            let freed = self.collect_without(Retention::keep_all(), GcMode::DryRun, &all)?;
            let objects = freed.freed.iter().map(|freed| freed.objects).sum();
            let bytes = freed.freed_bytes();
            return Ok(RemovalReport { sessions: removed, objects, bytes, erasure: Erasure::NotStarted });
        }
        self.writer()?;
        let wanted = || self.readers.at_once(|connection| removed_with(connection, &removal));
        let ids = || Ok(wanted()?.into_iter().map(|one| one.session).collect());
        let claims = self.claim_all(&removal.owner, ids).await?;
        let removed = wanted().and_then(|removed| self.remove_held(removed, removal.at));
        self.release_all(claims).await;
        self.finish_removal(removed?)
    }

    /// Deletes sessions that are claimed, the youngest first: no fork or sub-agent outlives its parent.
    fn remove_held(
        &self,
        removed: Vec<RemovedSession>,
        at: Timestamp,
    ) -> Result<Vec<RemovedSession>, StoreError> {
        let writer = self.writer()?;
        for one in removed.iter().rev() {
            writer.alone(|connection| {
                overwriting(connection, || transaction(connection, || unlist(connection, one, at)))
            })?;
            crash_point!("remove.unlisted");
        }
        self.complete_removals()?;
        Ok(removed)
    }

    /// Deletes the records of all sessions that were removed.
    fn complete_removals(&self) -> Result<(), StoreError> {
        let (writer, limit) = (self.writer()?, self.options.transaction_bytes);
        for number in self.readers.with(pending)? {
            loop {
                let is_done = writer.alone(|connection| {
                    overwriting(connection, || {
                        transaction(connection, || delete_records(connection, number, limit))
                    })
                })?;
                crash_point!("remove.records");
                if is_done {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Collects what the removed sessions leave, and rebuilds the store's files.
    pub(super) fn finish_removal(&self, sessions: Vec<RemovedSession>) -> Result<RemovalReport, StoreError> {
        let writer = self.writer()?;
        let mut report = RemovalReport { sessions, ..RemovalReport::default() };
        let collected = self.collect_overwriting(Retention::keep_all());
        let swept = collected.and_then(|collected| {
            report.objects = collected.freed.iter().map(|freed| freed.objects).sum();
            report.bytes = collected.freed_bytes();
            let unused = self.readers.at_once(unused_marks)?;
            writer.alone(|connection| {
                overwriting(connection, || transaction(connection, || delete_marks(connection, &unused)))
            })
        });
        crash_point!("remove.collected");
        report.erasure = erase(writer);
        if let Err(error) = swept {
            let reason = format!("unused objects could not be collected: {}", chain_of(&error));
            report.erasure = Erasure::Pending { reason };
        }
        Ok(report)
    }
}

/// Sessions to delete together, in the order of their creation.
fn removed_with(connection: &Connection, removal: &Removal) -> Result<Vec<RemovedSession>, Failure> {
    let numbers = sessions(connection)?;
    for session in &removal.sessions {
        // One whose removal was interrupted may be named again.
        let is_known = numbers.iter().any(|(_, known)| known == session);
        if !is_known && removed_at(connection, *session)?.is_none() {
            return Err(StoreError::NotFound { session: *session }.into());
        }
    }
    let ends = |session| match read::read(connection, session, Position::START, usize::MAX) {
        Ok(records) => Ok(is_open(&records)),
        // A damaged sub-agent cannot be resumed.
        Err(_) => Ok(false),
    };
    let removed =
        SqliteContents(connection).origins()?.removed_with(&removal.sessions, removal.forks, ends)?;
    let numbers = numbers.into_iter().filter(|(_, session)| removed.contains(session));
    let counted = numbers.map(|(number, session)| {
        let records = end_of(connection, session, number).map_or(0, |(head, _)| head.number());
        RemovedSession { session, records }
    });
    Ok(counted.collect())
}

/// Deletes a session's entry and everything but its records. The caller has begun a transaction.
fn unlist(connection: &Connection, one: &RemovedSession, at: Timestamp) -> Result<(), Failure> {
    let name = one.session.to_string();
    let Some(number) = number_of(connection, &name)? else { return Ok(()) };
    for table in ["snapshots", "summaries", "tags"] {
        connection.execute(&format!("DELETE FROM {table} WHERE session = ?1"), [number])?;
    }
    connection.execute("DELETE FROM inbox WHERE session = ?1", [&name])?;
    redactions::delete(connection, number)?;
    connection.execute("DELETE FROM sessions WHERE id = ?1", [number])?;
    let sql = "INSERT OR REPLACE INTO removals (session, at, records, number) VALUES (?1, ?2, ?3, ?4)";
    connection.execute(sql, params![name, at.to_string(), one.records.cast_signed(), number])?;
    Ok(())
}

/// Numbers of removed sessions whose records are not deleted yet.
pub(super) fn pending(connection: &Connection) -> Result<Vec<i64>, Failure> {
    let mut sql =
        connection.prepare("SELECT number FROM removals WHERE number IS NOT NULL ORDER BY number")?;
    let rows = sql.query_map([], |row| row.get(0))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Deletes records of a removed session, up to `limit` bytes. Returns whether none is left. The caller has
/// begun a transaction.
fn delete_records(connection: &Connection, number: i64, limit: u64) -> Result<bool, Failure> {
    let sql = "SELECT id, octet_length(record) FROM records WHERE id BETWEEN ?1 AND ?2 ORDER BY id";
    let mut sql = connection.prepare_cached(sql)?;
    let mut rows = sql.query([first_key(number), last_key(number)])?;
    let (mut last, mut bytes) = (None, 0);
    while let Some(row) = rows.next()? {
        last = Some(row.get::<_, i64>(0)?);
        bytes += row.get::<_, i64>(1)?.cast_unsigned();
        if bytes >= limit {
            break;
        }
    }
    drop(rows);
    match last.filter(|_| bytes >= limit) {
        Some(last) => {
            connection
                .execute("DELETE FROM records WHERE id BETWEEN ?1 AND ?2", [first_key(number), last])?;
            Ok(false)
        }
        None => {
            delete_all_records(connection, number)?;
            Ok(true)
        }
    }
}

/// Deletes all records of a removed session. The caller has begun a transaction.
fn delete_all_records(connection: &Connection, number: i64) -> Result<(), Failure> {
    let range = [first_key(number), last_key(number)];
    connection.execute("DELETE FROM records WHERE id BETWEEN ?1 AND ?2", range)?;
    connection.execute("UPDATE removals SET number = NULL WHERE number = ?1", [number])?;
    Ok(())
}

/// Forgets the removal of a session that is created again. The caller has begun a transaction.
pub(super) fn forget_removal(connection: &Connection, name: &str) -> Result<(), Failure> {
    let sql = "DELETE FROM removals WHERE session = ?1 RETURNING number";
    let mut sql = connection.prepare_cached(sql)?;
    let pending: Option<Option<i64>> = sql.query_row([name], |row| row.get(0)).optional()?;
    match pending.flatten() {
        Some(number) => delete_all_records(connection, number),
        None => Ok(()),
    }
}

/// Time at which a session was removed.
fn removed_at(connection: &Connection, session: SessionId) -> Result<Option<String>, Failure> {
    let sql = "SELECT at FROM removals WHERE session = ?1";
    Ok(connection.query_row(sql, [session.to_string()], |row| row.get(0)).optional()?)
}

/// All removed sessions with their numbers of records.
pub(super) fn all_removed(connection: &Connection) -> Result<Vec<RemovedSession>, Failure> {
    let mut sql = connection.prepare("SELECT session, records FROM removals ORDER BY at, session")?;
    let mut rows = sql.query([])?;
    let mut removed = Vec::new();
    while let Some(row) = rows.next()? {
        let session = session_in(row.get_ref(0)?)?;
        removed.push(RemovedSession { session, records: row.get::<_, i64>(1)?.cast_unsigned() });
    }
    Ok(removed)
}

/// Copies the notes of removed sessions to another store.
pub(super) fn copy_notes(old: &Connection, new: &Connection) -> Result<(), Failure> {
    let mut sql = old.prepare("SELECT session, at, records FROM removals")?;
    let mut rows = sql.query([])?;
    while let Some(row) = rows.next()? {
        let (session, at, records): (String, String, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let sql = "INSERT OR REPLACE INTO removals (session, at, records) VALUES (?1, ?2, ?3)";
        new.execute(sql, params![session, at, records])?;
    }
    Ok(())
}

/// Marks of objects without content that nothing names any more.
fn unused_marks(connection: &Connection) -> Result<BTreeSet<ObjectId>, Failure> {
    let mut unused = BTreeSet::new();
    let mut sql = connection.prepare("SELECT id FROM objects WHERE content IS NULL")?;
    let mut rows = sql.query([])?;
    while let Some(row) = rows.next()? {
        unused.insert(id_in(row.get_ref(0)?)?);
    }
    if unused.is_empty() {
        return Ok(unused);
    }
    let mut manifests = BTreeSet::new();
    for (number, session) in sessions(connection)? {
        read::texts(connection, session, number, Position::START, usize::MAX, |_, text| {
            let named = References::in_text(text);
            manifests.extend(named.roots.iter().map(|root| root.manifest));
            let roots = named.roots.iter().flat_map(|root| [root.tree, root.manifest]);
            roots.chain(named.objects).for_each(|id| _ = unused.remove(&id));
            Ok(())
        })?;
    }
    for (id, kind, _) in gc::all_stored(connection)? {
        let is_manifest = manifests.contains(&id);
        if !is_manifest && kind == ObjectKind::Blob {
            continue;
        }
        let Some(object) = objects::get(connection, id)? else { continue };
        let named = match is_manifest {
            true => named_in_manifest(object.bytes()).unwrap_or_default(),
            false => below(&object)?,
        };
        named.iter().for_each(|id| _ = unused.remove(id));
    }
    Ok(unused)
}

/// Deletes marks that are still without content.
fn delete_marks(connection: &Connection, marks: &BTreeSet<ObjectId>) -> Result<(), Failure> {
    let mut sql = connection.prepare_cached("DELETE FROM objects WHERE id = ?1 AND content IS NULL")?;
    for id in marks {
        sql.execute([&id.as_bytes()[..]])?;
    }
    Ok(())
}
