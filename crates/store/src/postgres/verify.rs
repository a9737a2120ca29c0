//! Detection of damage.
//!
//! Verification reads everything and changes nothing: the chain of each journal and its end, each record, each object, and everything below the workspace roots that were not pruned. It
//! lists its findings; a finding is not an error. Damage of the server's files is found by the server's own tools.

use std::collections::{BTreeSet, HashSet};

use backstitch_core::id::SessionId;
use backstitch_core::journal::{Position, Record, WorkspaceRoot};
use backstitch_core::object::ObjectId;
use backstitch_core::ports::{Damage, RemovedSession, StoreError, StoreLocation, VerifyReport};
use uuid::Uuid;

use super::contents::PostgresContents;
use super::error::{Failure, chain_of};
use super::link::Link;
use super::objects::get_object;
use super::records::{existing, numbered_sessions, texts};
use super::schema::get;
use super::server::parameters;
use super::{inbox, index, snapshots, store};
use crate::garbage::Journals as _;
use crate::packed::Presence;
use crate::reach::{StoredObjects as _, Walk};
use crate::references::References;

/// Reads everything and reports damage.
pub(super) fn verify(link: &Link<'_>, shared: &store::SharedStore) -> Result<VerifyReport, StoreError> {
    let mut report = VerifyReport::default();
    let contents = PostgresContents::new(link);
    let mut roots = BTreeSet::new();
    for (number, session) in numbered_sessions(link)? {
        report.sessions += 1;
        check_session(link, shared, &contents, (number, session), &mut roots, &mut report)?;
    }
    check_strays(link, &mut report)?;
    report.removed = removed(link)?;
    check_objects(link, &contents, &mut report)?;
    check_roots(&contents, roots, &mut report)?;
    Ok(report)
}

/// Returns what was read, or reports why it cannot be read. An outage of the server is not damage.
fn read_or_report<T>(
    place: StoreLocation,
    read: Result<T, Failure>,
    report: &mut VerifyReport,
) -> Result<Option<T>, Failure> {
    match read {
        Ok(read) => Ok(Some(read)),
        Err(failure) if failure.is_outage() => Err(failure),
        Err(failure) => {
            report.add(place, chain_of(&failure.into()));
            Ok(None)
        }
    }
}

fn check_session(
    link: &Link<'_>,
    shared: &store::SharedStore,
    contents: &PostgresContents<'_>,
    (number, session): (i64, SessionId),
    roots: &mut BTreeSet<(ObjectId, ObjectId)>,
    report: &mut VerifyReport,
) -> Result<(), Failure> {
    let place = StoreLocation::Session(session);
    // Records that are appended from now on are not looked at.
    let head = match existing(link, session) {
        Ok((_, head)) => head,
        // It was removed meanwhile.
        Err(Failure::Port(_)) => return Ok(()),
        Err(failure) => return Err(failure),
    };
    let (mut from, known) = (Position::START, report.findings.len());
    loop {
        let most = usize::try_from(head.number().saturating_sub(from.number())).unwrap_or(usize::MAX);
        let result = texts(link, session, from, most, |position, text| {
            from = position.next();
            report.records += 1;
            check_record(contents, session, position, text, roots, report)
        });
        match result {
            Ok(()) => break,
            Err(Failure::Port(error)) => match *error {
                StoreError::Damaged { position, damage, .. } => {
                    // A record before the first one was reported already; its checksum cannot continue the chain.
                    let is_known = position < from;
                    if !is_known {
                        report.add(StoreLocation::Record(session, position), &damage);
                    }
                    // Verification can continue after a bad record, but not after a gap.
                    if damage == Damage::Gap {
                        break;
                    }
                    from = if is_known { from.next() } else { position.next() };
                }
                // It was removed meanwhile.
                StoreError::NotFound { .. } => return Ok(()),
                error => {
                    report.add(place, chain_of(&error));
                    break;
                }
            },
            Err(failure) => return Err(failure),
        }
    }
    if from != head && report.findings.len() == known {
        report.add(place, format!("its journal ends at {from}, and {head} was acknowledged"));
    }
    let sql = "SELECT s.chain = r.checksum FROM {schema}.sessions s JOIN {schema}.records r ON r.session = s.id AND r.position = s.head - 1
        WHERE s.id = $1";
    let ends = link.query(sql, parameters![number => INT8])?;
    if ends.first().map(|row| get::<bool>(row, 0)).transpose()? == Some(false) {
        report.add(place, "its end is not that of its last record");
    }
    let snapshot = link.wait(snapshots::read(shared, session, None));
    let snapshot = read_or_report(place, snapshot, report)?.flatten();
    if snapshot.is_some_and(|snapshot| snapshot.position > head) {
        report.add(place, "its snapshot is beyond the end of its journal");
    }
    let sql =
        "SELECT position FROM {schema}.records WHERE session = $1 AND replaced IS NOT NULL ORDER BY position";
    let redacted = link.query(sql, parameters![number => INT8])?;
    let redacted: Vec<Position> = redacted
        .iter()
        .map(|row| Ok(Position::new(get::<i64>(row, 0)?.cast_unsigned())))
        .collect::<Result<_, Failure>>()?;
    if !redacted.is_empty() {
        report.redacted.push((session, redacted));
    }
    read_or_report(place, inbox::list_with(link, session), report)?;
    Ok(())
}

fn check_record(
    contents: &PostgresContents<'_>,
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
        match contents.presence(id)? {
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

/// Reports rows whose session or record does not exist.
fn check_strays(link: &Link<'_>, report: &mut VerifyReport) -> Result<(), Failure> {
    let sql = "SELECT DISTINCT session FROM {schema}.records WHERE session NOT IN
        (SELECT id FROM {schema}.sessions WHERE created IS NOT NULL) ORDER BY session";
    for row in link.query(sql, &[])? {
        let number: i64 = get(&row, 0)?;
        let problem = format!("there are records of session number {number}, which does not exist");
        report.add(StoreLocation::File, problem);
    }
    for number in index::strays(link)? {
        let problem = format!("there is a summary of session number {number}, which does not exist");
        report.add(StoreLocation::File, problem);
    }
    let sql = "SELECT count(*) FROM {schema}.changes c WHERE NOT EXISTS
        (SELECT FROM {schema}.records r WHERE r.session = c.session AND r.position = c.position)";
    let strays = link.query(sql, &[])?;
    let strays = strays.first().map(|row| get::<i64>(row, 0)).transpose()?.unwrap_or_default();
    if strays > 0 {
        report.add(StoreLocation::File, format!("{strays} changed paths name records that do not exist"));
    }
    Ok(())
}

fn check_objects(
    link: &Link<'_>,
    contents: &PostgresContents<'_>,
    report: &mut VerifyReport,
) -> Result<(), Failure> {
    for (id, ..) in contents.all_stored()? {
        report.objects += 1;
        // Whether one that is gone is missed, the records say.
        read_or_report(StoreLocation::Object(id), get_object(link, id), report)?;
    }
    Ok(())
}

fn check_roots(
    contents: &PostgresContents<'_>,
    roots: BTreeSet<(ObjectId, ObjectId)>,
    report: &mut VerifyReport,
) -> Result<(), Failure> {
    let mut walk = Walk::new(contents);
    for (tree, manifest) in roots {
        let mut is_stored = true;
        for id in [tree, manifest] {
            let presence = contents.presence(id)?;
            is_stored &= presence == Presence::Stored;
            if presence == Presence::Lost {
                report.lost.insert(id);
            }
        }
        if is_stored && let Err(error) = walk.add_root(WorkspaceRoot { tree, manifest }) {
            report.add(StoreLocation::Object(tree), format!("below it: {}", chain_of(&error)));
        }
    }
    report.lost.append(&mut walk.lost);
    report.redacted_objects.append(&mut walk.redacted);
    for id in std::mem::take(&mut walk.missing) {
        report.add(StoreLocation::Object(id), "a workspace root needs it, and it is not stored");
    }
    Ok(())
}

/// All removed sessions with their numbers of records.
pub(super) fn removed(link: &Link<'_>) -> Result<Vec<RemovedSession>, Failure> {
    let rows = link.query("SELECT session, records FROM {schema}.removals ORDER BY at, session", &[])?;
    let removed = rows.iter().map(|row| {
        let session = SessionId::from_uuid(get::<Uuid>(row, 0)?);
        Ok(RemovedSession { session, records: get::<i64>(row, 1)?.cast_unsigned() })
    });
    removed.collect()
}
