//! Removal of sessions.
//!
//! The first transaction of a removal deletes the session's entry, its snapshot, summary, changed paths, inbox and place in the queue,
//! and notes the removal with the number of the session. From then on the session does not exist. Its records follow in
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
use rusqlite::{Connection, params};

use super::contents::SqliteContents;
use super::erase::{erase, overwriting};
use super::error::{Failure, chain_of};
use super::keys::{end_of, number_of};
use super::objects::{self, all_stored, id_in};
use super::read::{self, numbered_sessions};
use super::removals::{delete_records, removed_at};
use super::sql::{execute, rows};
use super::store::SqliteStore;
use super::{queue, redact, redactions, removals};
use crate::family::is_open;
use crate::redaction::Contents as _;
use crate::references::{References, below, named_in_manifest};

impl SqliteStore {
    /// Lists the sessions that were removed, and not created again.
    pub fn removed(&self) -> Result<Vec<RemovedSession>, StoreError> {
        self.readers.with(removals::all)
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
            overwriting(writer, |connection| unlist(connection, one, at))?;
            crash_point!("remove.unlisted");
        }
        self.complete_removals()?;
        Ok(removed)
    }

    /// Deletes the records of all sessions that were removed.
    fn complete_removals(&self) -> Result<(), StoreError> {
        let (writer, limit) = (self.writer()?, self.options.transaction_bytes);
        for number in self.readers.with(removals::pending)? {
            loop {
                let is_done = overwriting(writer, |connection| delete_records(connection, number, limit))?;
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
            overwriting(writer, |connection| delete_marks(connection, &unused))
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
    let numbers = numbered_sessions(connection)?;
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
    redact::forget(connection, number)?;
    connection.execute("DELETE FROM inbox WHERE session = ?1", [&name])?;
    queue::forget(connection, &name, number)?;
    redactions::delete(connection, number)?;
    connection.execute("DELETE FROM sessions WHERE id = ?1", [number])?;
    let sql = "INSERT OR REPLACE INTO removals (session, at, records, number) VALUES (?1, ?2, ?3, ?4)";
    execute(connection, sql, params![name, at.to_string(), one.records.cast_signed(), number])
}

/// Marks of objects without content that nothing names any more.
fn unused_marks(connection: &Connection) -> Result<BTreeSet<ObjectId>, Failure> {
    let sql = "SELECT id FROM objects WHERE content IS NULL";
    let mut unused: BTreeSet<ObjectId> = rows(connection, sql, [], |row| id_in(row.get_ref(0)?))?;
    if unused.is_empty() {
        return Ok(unused);
    }
    let mut manifests = BTreeSet::new();
    for (number, session) in numbered_sessions(connection)? {
        read::texts(connection, session, number, Position::START, usize::MAX, |_, text| {
            let named = References::in_text(text);
            manifests.extend(named.roots.iter().map(|root| root.manifest));
            let roots = named.roots.iter().flat_map(|root| [root.tree, root.manifest]);
            roots.chain(named.objects).for_each(|id| _ = unused.remove(&id));
            Ok(())
        })?;
    }
    for (id, kind, _) in all_stored(connection)? {
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
    let sql = "DELETE FROM objects WHERE id = ?1 AND content IS NULL";
    marks.iter().try_for_each(|id| execute(connection, sql, [&id.as_bytes()[..]]))
}
