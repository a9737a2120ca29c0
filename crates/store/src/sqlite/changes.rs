//! The index of changed paths: what calls changed, by path.
//!
//! The rows of a call are written in the transaction of the batch that ends it, from the paths that its last record lists. A
//! session whose records do not list all of them is noted as unlisted, until a caller that can compare files puts the rows. A
//! reader of the index learns which sessions are certain, and which may have changed a path, so nothing is missed before that.

use std::collections::{HashMap, HashSet};

use backstitch_core::id::{CallId, SessionId};
use backstitch_core::journal::{
    CallChanges, CallFinished, ChangeKind, ChangedPath, FileContent, Position, Record, RecordBody,
    WorkspaceRoot,
};
use backstitch_core::object::ObjectId;
use backstitch_core::ports::{ChangingSessions, ListedChanges, StoreError};
use rusqlite::{Connection, Row, params};

use super::error::Failure;
use super::keys::{end_of, first_key, key_of, last_key, number_of, position_of};
use super::objects::id_in;
use super::read::{existing, session_in, texts};
use super::sql::{execute, first, rows};

/// Writes the rows of a call. `key` is that of the record that ends it; `None` stands for changes that are not known. Rows that
/// damage has left there are replaced: the index is a cache, and never a reason to refuse a batch.
pub(super) fn write(connection: &Connection, key: i64, changes: Option<&CallChanges>) -> Result<(), Failure> {
    let Some(CallChanges::Paths(paths)) = changes else {
        let counts = changes.map(|changes| serde_json::to_string(&changes.counts())).transpose();
        let counts = counts.map_err(|error| StoreError::Backend(error.into()))?;
        let sql = "INSERT OR REPLACE INTO changes (record, number, counts) VALUES (?1, 0, ?2)";
        return execute(connection, sql, params![key, counts]);
    };
    let sql = "INSERT OR REPLACE INTO changes (record, number, path, change, object_before, bytes_before,
        object_after, bytes_after) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
    let object = |content: FileContent| content.object.as_bytes().to_vec();
    let bytes = |content: FileContent| content.bytes.map(u64::cast_signed);
    for (number, ChangedPath { path, change, before, after }) in (0_i64..).zip(paths) {
        let (object_before, bytes_before) = (before.map(object), before.and_then(bytes));
        let (object_after, bytes_after) = (after.map(object), after.and_then(bytes));
        let change = word_of(*change);
        let values =
            params![key, number, path, change, object_before, bytes_before, object_after, bytes_after];
        execute(connection, sql, values)?;
    }
    Ok(())
}

/// Lists what the calls of a session changed again, as far as their records list it. The caller has begun a transaction.
pub(super) fn rebuild(connection: &Connection, session: SessionId, number: i64) -> Result<(), Failure> {
    forget(connection, number)?;
    let mut roots: HashMap<CallId, Option<WorkspaceRoot>> = HashMap::new();
    let mut is_complete = true;
    texts(connection, session, number, Position::START, usize::MAX, |position, text| {
        // Most records are of another kind, and need not be decoded.
        if !text.contains(r#""kind":"call_"#) {
            return Ok(());
        }
        let Ok(record) = Record::decode(position, text) else {
            is_complete = false;
            return Ok(());
        };
        match &record.body {
            RecordBody::CallStarted(started) => {
                roots.insert(started.call_id, started.root);
            }
            RecordBody::CallFinished(finished) => match (&finished.changes, key_of(number, position)) {
                (Some(changes), Some(key)) => write(connection, key, Some(changes))?,
                _ => {
                    let before = roots.get(&finished.call_id).copied().flatten();
                    is_complete &= !has_other_files(before, finished);
                }
            },
            _ => {}
        }
        Ok(())
    })?;
    if is_complete { Ok(()) } else { mark_unlisted(connection, number) }
}

/// Whether the files after a call are not those before it.
fn has_other_files(before: Option<WorkspaceRoot>, finished: &CallFinished) -> bool {
    let after = finished.root.or(finished.rescue);
    before.is_some() && after.is_some() && before != after
}

/// Notes that a session has calls without rows.
pub(super) fn mark_unlisted(connection: &Connection, number: i64) -> Result<(), Failure> {
    execute(connection, "INSERT OR IGNORE INTO unlisted_changes (session) VALUES (?1)", [number])
}

/// Deletes the rows of a session, and the note about calls without rows.
pub(super) fn forget(connection: &Connection, number: i64) -> Result<(), Failure> {
    let sql = "DELETE FROM changes WHERE record BETWEEN ?1 AND ?2";
    execute(connection, sql, [first_key(number), last_key(number)])?;
    execute(connection, "DELETE FROM unlisted_changes WHERE session = ?1", [number])
}

/// Replaces the rows of a session if its head is still this one. Returns whether it is.
pub(super) fn put(
    connection: &Connection,
    session: SessionId,
    head: Position,
    listed: &[ListedChanges],
) -> Result<bool, Failure> {
    let number = number_of(connection, &session.to_string())?.ok_or(StoreError::NotFound { session })?;
    if end_of(connection, session, number)?.0 != head {
        return Ok(false);
    }
    forget(connection, number)?;
    for one in listed {
        if let Some(key) = key_of(number, one.position) {
            write(connection, key, one.changes.as_ref())?;
        }
    }
    Ok(true)
}

/// Reads the rows of a session, or `None` if it has calls without rows, or rows that say nothing.
pub(super) fn of_session(
    connection: &Connection,
    session: SessionId,
) -> Result<Option<Vec<ListedChanges>>, Failure> {
    let number = existing(connection, session)?;
    let sql = "SELECT 1 FROM unlisted_changes WHERE session = ?1";
    if first(connection, sql, [number], |_| Ok(()))?.is_some() {
        return Ok(None);
    }
    let sql = "SELECT record, path, change, object_before, bytes_before, object_after, bytes_after, counts
        FROM changes WHERE record BETWEEN ?1 AND ?2 ORDER BY record, number";
    let found: Vec<Option<ListedChanges>> =
        rows(connection, sql, [first_key(number), last_key(number)], row_of_call)?;
    let mut listed: Vec<ListedChanges> = Vec::new();
    for row in found {
        let Some(row) = row else { return Ok(None) };
        if let Some(CallChanges::Paths(path)) = &row.changes
            && let Some(ListedChanges { position, changes: Some(CallChanges::Paths(paths)) }) =
                listed.last_mut()
            && *position == row.position
        {
            paths.extend(path.iter().cloned());
        } else {
            listed.push(row);
        }
    }
    Ok(Some(listed))
}

/// Decodes a row, which lists one path of its call or none; `None` if it cannot be decoded.
fn row_of_call(row: &Row<'_>) -> Result<Option<ListedChanges>, Failure> {
    let position = position_of(row.get(0)?);
    let path: Option<String> = row.get(1)?;
    let (change, counts): (Option<String>, Option<String>) = (row.get(2)?, row.get(7)?);
    let changes = match (path, counts) {
        (Some(path), _) => {
            let Some(change) = change.as_deref().and_then(change_of) else { return Ok(None) };
            let (before, after) = (content_in(row, 3)?, content_in(row, 5)?);
            Some(CallChanges::Paths(vec![ChangedPath { path, change, before, after }]))
        }
        (None, Some(counts)) => match serde_json::from_str(&counts) {
            Ok(counts) => Some(CallChanges::Counts(counts)),
            Err(_) => return Ok(None),
        },
        (None, None) => None,
    };
    Ok(Some(ListedChanges { position, changes }))
}

/// Decodes the columns of a content: its object and its size.
fn content_in(row: &Row<'_>, column: usize) -> Result<Option<FileContent>, Failure> {
    let object: Option<ObjectId> = id_in(row.get_ref(column)?).ok();
    let bytes: Option<i64> = row.get(column + 1)?;
    Ok(object.map(|object| FileContent { object, bytes: bytes.map(i64::cast_unsigned) }))
}

/// Finds the sessions that changed a path or something below it. The empty path stands for everything.
pub(super) fn sessions_with(connection: &Connection, path: &str) -> Result<ChangingSessions, Failure> {
    // The byte after a slash is a zero digit.
    let (from, to) = match path {
        "" => (String::new(), char::MAX.to_string()),
        path => (format!("{path}/"), format!("{path}0")),
    };
    let sql = "SELECT session FROM sessions WHERE id IN (
            SELECT record >> 32 FROM changes WHERE path = ?1
            UNION SELECT record >> 32 FROM changes WHERE path > ?2 AND path < ?3
        ) ORDER BY id";
    let certain: Vec<SessionId> =
        rows(connection, sql, params![path, from, to], |row| session_in(row.get_ref(0)?))?;
    let sql = "SELECT session FROM sessions WHERE id IN (
            SELECT record >> 32 FROM changes WHERE path IS NULL UNION SELECT session FROM unlisted_changes
        ) ORDER BY id";
    let mut possible: Vec<SessionId> = rows(connection, sql, [], |row| session_in(row.get_ref(0)?))?;
    let known: HashSet<SessionId> = certain.iter().copied().collect();
    possible.retain(|session| !known.contains(session));
    Ok(ChangingSessions { certain, possible })
}

/// Number of rows about records that do not exist, which only damage leaves.
pub(super) fn strays(connection: &Connection) -> Result<u64, Failure> {
    let sql = "SELECT count(*) FROM changes WHERE record NOT IN (SELECT id FROM records)";
    let count: i64 = connection.query_row(sql, [], |row| row.get(0))?;
    Ok(count.cast_unsigned())
}

/// Deletes rows and notes about records and sessions that do not exist. The caller has begun a transaction.
pub(super) fn forget_strays(connection: &Connection) -> Result<(), Failure> {
    let sql = "DELETE FROM changes WHERE record NOT IN (SELECT id FROM records)";
    execute(connection, sql, [])?;
    let sql = "DELETE FROM unlisted_changes WHERE session NOT IN (SELECT id FROM sessions)";
    execute(connection, sql, [])
}

fn word_of(change: ChangeKind) -> &'static str {
    match change {
        ChangeKind::Added => "added",
        ChangeKind::Modified => "modified",
        ChangeKind::Mode => "mode",
        ChangeKind::Deleted => "deleted",
    }
}

fn change_of(word: &str) -> Option<ChangeKind> {
    let kinds = [ChangeKind::Added, ChangeKind::Modified, ChangeKind::Mode, ChangeKind::Deleted];
    kinds.into_iter().find(|kind| word_of(*kind) == word)
}
