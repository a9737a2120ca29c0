//! Detection of damage.
//!
//! Verification reads everything and changes nothing: SQLite's own check of the file, the chain of each
//! journal, each record, each object, and everything below the workspace roots that were not pruned. It lists
//! its findings; a finding is not an error.

use std::collections::{BTreeSet, HashSet};

use backstitch_core::id::SessionId;
use backstitch_core::journal::{Position, Record, WorkspaceRoot};
use backstitch_core::object::ObjectId;
use backstitch_core::ports::{Damage, StoreError, StoreLocation, VerifyReport};
use rusqlite::Connection;

use super::contents::SqliteContents;
use super::error::{Failure, chain_of};
use super::objects::{self, Presence, id_in, presence};
use super::read::{numbered_sessions, numbers_with_records, texts};
use super::sql::rows;
use super::store::SqliteStore;
use super::{changes, inbox, index, redactions, removals, snapshots};
use crate::reach::Walk;
use crate::references::References;

/// Maximum number of listed messages of SQLite's check.
const MOST_COMPLAINTS: usize = 100;

impl SqliteStore {
    /// Reads everything and reports damage. This blocks the thread; other readers and writers continue
    /// concurrently.
    pub fn verify(&self) -> Result<VerifyReport, StoreError> {
        self.readers.at_once(|connection| {
            let mut report = VerifyReport::default();
            check_file(connection, &mut report);
            let mut roots = BTreeSet::new();
            let sessions = read_or_report(StoreLocation::File, numbered_sessions(connection), &mut report);
            if let Some(sessions) = sessions {
                for (number, session) in &sessions {
                    report.sessions += 1;
                    check_session(connection, *session, *number, &mut roots, &mut report);
                }
                check_strays(connection, &sessions, &mut report);
            }
            check_removed(connection, &mut report);
            check_index(connection, &mut report);
            check_objects(connection, &mut report);
            check_roots(connection, roots, &mut report);
            Ok(report)
        })
    }
}

/// Returns what was read, or reports why it cannot be read.
fn read_or_report<T>(place: StoreLocation, read: Result<T, Failure>, report: &mut VerifyReport) -> Option<T> {
    read.map_err(|error| report.add(place, chain_of(&error.0))).ok()
}

fn check_file(connection: &Connection, report: &mut VerifyReport) {
    let complaints = || -> Result<Vec<String>, rusqlite::Error> {
        let mut sql = connection.prepare(&format!("PRAGMA integrity_check({MOST_COMPLAINTS})"))?;
        sql.query_map([], |row| row.get(0))?.collect()
    };
    let complaints = complaints().unwrap_or_else(|error| vec![error.to_string()]);
    for complaint in complaints.iter().filter(|complaint| *complaint != "ok") {
        report.add(StoreLocation::File, complaint);
    }
}

fn check_session(
    connection: &Connection,
    session: SessionId,
    number: i64,
    roots: &mut BTreeSet<(ObjectId, ObjectId)>,
    report: &mut VerifyReport,
) {
    let mut from = Position::START;
    loop {
        let result = texts(connection, session, number, from, usize::MAX, |position, text| {
            from = position.next();
            report.records += 1;
            check_record(connection, session, position, text, roots, report)
        });
        match result {
            Ok(()) => break,
            Err(Failure(StoreError::Damaged { position, damage, .. })) => {
                // A record before the first one was reported already; its checksum cannot continue the chain.
                let known = position < from;
                if !known {
                    report.add(StoreLocation::Record(session, position), &damage);
                }
                // Verification can continue after a bad record, but not after a gap.
                if damage == Damage::Gap {
                    break;
                }
                from = if known { from.next() } else { position.next() };
            }
            Err(error) => {
                report.add(StoreLocation::Session(session), chain_of(&error.0));
                break;
            }
        }
    }
    if from == Position::START {
        report.add(StoreLocation::Session(session), "none of its records can be read");
    }
    let place = StoreLocation::Session(session);
    let snapshot = read_or_report(place, snapshots::get(connection, session, None), report).flatten();
    if snapshot.is_some_and(|snapshot| snapshot.position > from) {
        report.add(place, "its snapshot is beyond the end of its journal");
    }
    let redacted = read_or_report(place, redactions::positions(connection, number), report);
    report.redacted.extend(redacted.filter(|positions| !positions.is_empty()).map(|them| (session, them)));
    if let Err(error) = inbox::list(connection, session) {
        report.add(place, format!("its inbox: {}", chain_of(&error.0)));
    }
}

fn check_record(
    connection: &Connection,
    session: SessionId,
    position: Position,
    text: &str,
    roots: &mut BTreeSet<(ObjectId, ObjectId)>,
    report: &mut VerifyReport,
) -> Result<(), Failure> {
    let place = StoreLocation::Record(session, position);
    let record = match Record::decode(position, text) {
        Ok(record) => record,
        Err(error) => {
            report.add(place, chain_of(&StoreError::BrokenRecord { session, source: error }));
            return Ok(());
        }
    };
    let named = References::in_text(text).roots;
    let of_roots: HashSet<ObjectId> = named.iter().flat_map(|root| [root.tree, root.manifest]).collect();
    roots.extend(named.iter().map(|root| (root.tree, root.manifest)));
    for id in record.body.object_refs() {
        match presence(connection, id)? {
            Presence::Stored => {}
            Presence::Pruned if of_roots.contains(&id) => {}
            Presence::Pruned => report.add(place, format!("it needs object {id}, which was pruned")),
            Presence::Lost => drop(report.lost.insert(id)),
            Presence::Redacted => drop(report.redacted_objects.insert(id)),
            Presence::Absent => report.add(place, format!("it needs object {id}, which is not stored")),
        }
    }
    Ok(())
}

/// Lists removed sessions, and reports notes about records that do not exist.
fn check_removed(connection: &Connection, report: &mut VerifyReport) {
    let removed = read_or_report(StoreLocation::File, removals::all(connection), report);
    report.removed = removed.unwrap_or_default();
    let strays = read_or_report(StoreLocation::File, redactions::strays(connection), report);
    if let Some(strays) = strays.filter(|strays| *strays > 0) {
        report.add(StoreLocation::File, format!("{strays} redactions name records that do not exist"));
    }
}

/// Reports records whose session does not exist.
fn check_strays(connection: &Connection, sessions: &[(i64, SessionId)], report: &mut VerifyReport) {
    let found = read_or_report(StoreLocation::File, numbers_with_records(connection), report);
    let pending = removals::pending(connection).unwrap_or_default();
    let known: HashSet<i64> = sessions.iter().map(|(number, _)| *number).chain(pending).collect();
    for number in found.into_iter().flatten().filter(|number| !known.contains(number)) {
        let problem = format!("there are records of session number {number}, which does not exist");
        report.add(StoreLocation::File, problem);
    }
}

/// Reports summaries whose session does not exist, and changed paths whose record does not. Whether the others say
/// what their journals say, only a caller that folds journals can tell.
fn check_index(connection: &Connection, report: &mut VerifyReport) {
    let strays = read_or_report(StoreLocation::File, index::strays(connection), report);
    for number in strays.into_iter().flatten() {
        let problem = format!("there is a summary of session number {number}, which does not exist");
        report.add(StoreLocation::File, problem);
    }
    let strays = read_or_report(StoreLocation::File, changes::strays(connection), report);
    if let Some(strays) = strays.filter(|strays| *strays > 0) {
        report.add(StoreLocation::File, format!("{strays} changed paths name records that do not exist"));
    }
}

fn check_objects(connection: &Connection, report: &mut VerifyReport) {
    let sql = "SELECT id FROM objects NOT INDEXED WHERE encoding NOT IN (2, 3, 4) ORDER BY number";
    let ids: Result<Vec<ObjectId>, Failure> = rows(connection, sql, [], |row| id_in(row.get_ref(0)?));
    for id in read_or_report(StoreLocation::File, ids, report).into_iter().flatten() {
        report.objects += 1;
        let place = StoreLocation::Object(id);
        if let Some(None) = read_or_report(place, objects::get(connection, id), report) {
            report.add(place, "it cannot be found by its id");
        }
    }
}

fn check_roots(connection: &Connection, roots: BTreeSet<(ObjectId, ObjectId)>, report: &mut VerifyReport) {
    let contents = SqliteContents(connection);
    let mut walk = Walk::new(&contents);
    for (tree, manifest) in roots {
        let found = [tree, manifest].map(|id| (id, presence(connection, id)));
        let lost = found.iter().filter(|(_, found)| matches!(found, Ok(Presence::Lost)));
        report.lost.extend(lost.map(|(id, _)| *id));
        if !found.iter().all(|(_, found)| matches!(found, Ok(Presence::Stored))) {
            continue;
        }
        if let Err(error) = walk.add_root(WorkspaceRoot { tree, manifest }) {
            report.add(StoreLocation::Object(tree), format!("below it: {}", chain_of(&error)));
        }
    }
    report.lost.append(&mut walk.lost);
    report.redacted_objects.append(&mut walk.redacted);
    for id in std::mem::take(&mut walk.missing) {
        report.add(StoreLocation::Object(id), "a workspace root needs it, and it is not stored");
    }
}
