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

use super::error::{Failure, chain_of};
use super::objects::{self, Presence, id_in, presence};
use super::reach::Walk;
use super::read::{numbered_sessions, numbers_with_records, texts};
use super::sql::rows;
use super::store::SqliteStore;
use super::{inbox, index, redactions, removals, snapshots};
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
            match numbered_sessions(connection) {
                Ok(sessions) => {
                    for (number, session) in &sessions {
                        report.sessions += 1;
                        check_session(connection, *session, *number, &mut roots, &mut report);
                    }
                    check_strays(connection, &sessions, &mut report);
                }
                Err(error) => report.add(StoreLocation::File, chain_of(&error.0)),
            }
            check_removed(connection, &mut report);
            check_index(connection, &mut report);
            check_objects(connection, &mut report);
            check_roots(connection, roots, &mut report);
            Ok(report)
        })
    }
}

fn check_file(connection: &Connection, report: &mut VerifyReport) {
    let complaints = || -> Result<Vec<String>, rusqlite::Error> {
        let mut sql = connection.prepare(&format!("PRAGMA integrity_check({MOST_COMPLAINTS})"))?;
        sql.query_map([], |row| row.get(0))?.collect()
    };
    match complaints() {
        Ok(complaints) => {
            for complaint in complaints.iter().filter(|complaint| *complaint != "ok") {
                report.add(StoreLocation::File, complaint);
            }
        }
        Err(error) => report.add(StoreLocation::File, error),
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
    match snapshots::get(connection, session, None) {
        Ok(Some(snapshot)) if snapshot.position > from => {
            report.add(StoreLocation::Session(session), "its snapshot is beyond the end of its journal");
        }
        Ok(_) => {}
        Err(error) => report.add(StoreLocation::Session(session), chain_of(&error.0)),
    }
    match redactions::positions(connection, number) {
        Ok(positions) if positions.is_empty() => {}
        Ok(positions) => report.redacted.push((session, positions)),
        Err(error) => report.add(StoreLocation::Session(session), chain_of(&error.0)),
    }
    if let Err(error) = inbox::list(connection, session) {
        report.add(StoreLocation::Session(session), format!("its inbox: {}", chain_of(&error.0)));
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
    match removals::all(connection) {
        Ok(removed) => report.removed = removed,
        Err(error) => report.add(StoreLocation::File, chain_of(&error.0)),
    }
    match redactions::strays(connection) {
        Ok(0) => {}
        Ok(strays) => {
            report.add(StoreLocation::File, format!("{strays} redactions name records that do not exist"));
        }
        Err(error) => report.add(StoreLocation::File, chain_of(&error.0)),
    }
}

/// Reports records whose session does not exist.
fn check_strays(connection: &Connection, sessions: &[(i64, SessionId)], report: &mut VerifyReport) {
    match numbers_with_records(connection) {
        Ok(found) => {
            let pending = removals::pending(connection).unwrap_or_default();
            let known: HashSet<i64> = sessions.iter().map(|(number, _)| *number).chain(pending).collect();
            for number in found.into_iter().filter(|number| !known.contains(number)) {
                report.add(
                    StoreLocation::File,
                    format!("there are records of session number {number}, which does not exist"),
                );
            }
        }
        Err(error) => report.add(StoreLocation::File, chain_of(&error.0)),
    }
}

/// Reports summaries whose session does not exist. Whether the others say what their journals say, only a
/// caller that folds journals can tell.
fn check_index(connection: &Connection, report: &mut VerifyReport) {
    match index::strays(connection) {
        Ok(strays) => {
            for number in strays {
                report.add(
                    StoreLocation::File,
                    format!("there is a summary of session number {number}, which does not exist"),
                );
            }
        }
        Err(error) => report.add(StoreLocation::File, chain_of(&error.0)),
    }
}

fn check_objects(connection: &Connection, report: &mut VerifyReport) {
    let ids = || -> Result<Vec<ObjectId>, Failure> {
        let sql = "SELECT id FROM objects NOT INDEXED WHERE encoding NOT IN (2, 3, 4) ORDER BY number";
        rows(connection, sql, [], |row| id_in(row.get_ref(0)?))
    };
    match ids() {
        Ok(ids) => {
            for id in ids {
                report.objects += 1;
                match objects::get(connection, id) {
                    Ok(Some(_)) => {}
                    Ok(None) => report.add(StoreLocation::Object(id), "it cannot be found by its id"),
                    Err(error) => report.add(StoreLocation::Object(id), chain_of(&error.0)),
                }
            }
        }
        Err(error) => report.add(StoreLocation::File, chain_of(&error.0)),
    }
}

fn check_roots(connection: &Connection, roots: BTreeSet<(ObjectId, ObjectId)>, report: &mut VerifyReport) {
    let mut walk = Walk::new(connection);
    for (tree, manifest) in roots {
        let found = [tree, manifest].map(|id| (id, presence(connection, id)));
        let lost = found.iter().filter(|(_, found)| matches!(found, Ok(Presence::Lost)));
        report.lost.extend(lost.map(|(id, _)| *id));
        if !found.iter().all(|(_, found)| matches!(found, Ok(Presence::Stored))) {
            continue;
        }
        if let Err(error) = walk.add_root(WorkspaceRoot { tree, manifest }) {
            report.add(StoreLocation::Object(tree), format!("below it: {}", chain_of(&error.0)));
        }
    }
    report.lost.append(&mut walk.lost);
    report.redacted_objects.append(&mut walk.redacted);
    for id in std::mem::take(&mut walk.missing) {
        report.add(StoreLocation::Object(id), "a workspace root needs it, and it is not stored");
    }
}
