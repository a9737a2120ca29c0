//! The index of changed paths: what calls changed, by path.
//!
//! The rows of a call are written in the transaction of the batch that ends it, from the paths that its last record lists. A session whose records do not list all of them
//! is noted as unlisted, until a caller that can compare files puts the rows.

use std::collections::{HashMap, HashSet};

use backstitch_core::id::{CallId, SessionId};
use backstitch_core::journal::{
    CallChanges, CallFinished, ChangeKind, ChangedPath, FileContent, Position, Record, RecordBody,
    WorkspaceRoot,
};
use backstitch_core::ports::{ChangingSessions, ListedChanges, StoreError};
use serde_json::{Value, json};
use tokio_postgres::Row;
use uuid::Uuid;

use super::error::Failure;
use super::link::Link;
use super::objects::id_in;
use super::records::texts;
use super::schema::get;
use super::server::parameters;
use super::store::SharedStore;

/// Rows of calls as an array in JSON; `None` if there are none. `None` in place of changes stands for those that are not known.
pub(super) fn rows_of<'a>(
    calls: impl Iterator<Item = (Position, Option<&'a CallChanges>)>,
) -> Result<Option<String>, StoreError> {
    let mut rows: Vec<Value> = Vec::new();
    for (position, changes) in calls {
        let position = position.number();
        let Some(CallChanges::Paths(paths)) = changes else {
            let counts = changes.map(|changes| serde_json::to_string(&changes.counts())).transpose();
            let counts = counts.map_err(|error| StoreError::Backend(error.into()))?;
            rows.push(json!({ "position": position, "number": 0, "counts": counts }));
            continue;
        };
        let object = |content: FileContent| content.object.to_string();
        let bytes = |content: FileContent| content.bytes.map(u64::cast_signed);
        for (number, ChangedPath { path, change, before, after }) in paths.iter().enumerate() {
            rows.push(json!({
                "position": position, "number": number, "path": path, "change": word_of(*change),
                "object_before": before.map(object), "bytes_before": before.and_then(bytes),
                "object_after": after.map(object), "bytes_after": after.and_then(bytes),
            }));
        }
    }
    Ok((!rows.is_empty()).then(|| Value::from(rows).to_string()))
}

/// Replaces the rows of a session if its head is still this one. Returns whether it is.
pub(super) async fn put(
    shared: &SharedStore,
    session: SessionId,
    head: Position,
    listed: &[ListedChanges],
) -> Result<bool, Failure> {
    shared.check_writable()?;
    let rows = rows_of(listed.iter().map(|one| (one.position, one.changes.as_ref())))?;
    let sql = "SELECT {schema}.put_changes_1($1, $2, $3)";
    let values = parameters![*session.as_uuid() => UUID, head.number().cast_signed() => INT8, rows => TEXT];
    let rows = shared.server.read(sql, values).await?;
    let put: Option<bool> = rows.first().map(|row| get(row, 0)).transpose()?.flatten();
    Ok(put.ok_or(StoreError::NotFound { session })?)
}

/// Lists what the calls of a session changed again, as far as their records list it. The caller has begun a transaction.
pub(super) fn rebuild(link: &Link<'_>, session: SessionId, number: i64) -> Result<(), Failure> {
    forget(link, number)?;
    let mut roots: HashMap<CallId, Option<WorkspaceRoot>> = HashMap::new();
    let (mut is_complete, mut listed) = (true, Vec::new());
    texts(link, session, Position::START, usize::MAX, |position, text| {
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
            RecordBody::CallFinished(finished) => match &finished.changes {
                Some(changes) => listed.push((position, changes.clone())),
                None => {
                    let before = roots.get(&finished.call_id).copied().flatten();
                    is_complete &= !has_other_files(before, finished);
                }
            },
            _ => {}
        }
        Ok(())
    })?;
    if let Some(rows) = rows_of(listed.iter().map(|(position, changes)| (*position, Some(changes))))? {
        link.query("SELECT {schema}.list_changes_1($1, $2)", parameters![number => INT8, rows => TEXT])?;
    }
    if is_complete { Ok(()) } else { mark_unlisted(link, number) }
}

/// Whether the files after a call are not those before it.
fn has_other_files(before: Option<WorkspaceRoot>, finished: &CallFinished) -> bool {
    let after = finished.root.or(finished.rescue);
    before.is_some() && after.is_some() && before != after
}

/// Notes that a session has calls without rows.
pub(super) fn mark_unlisted(link: &Link<'_>, number: i64) -> Result<(), Failure> {
    let sql = "INSERT INTO {schema}.unlisted_changes (session) VALUES ($1) ON CONFLICT DO NOTHING";
    link.query(sql, parameters![number => INT8]).map(drop)
}

/// Deletes the rows of a session, and the note about calls without rows.
pub(super) fn forget(link: &Link<'_>, number: i64) -> Result<(), Failure> {
    for table in ["changes", "unlisted_changes"] {
        let sql = format!("DELETE FROM {{schema}}.{table} WHERE session = $1");
        link.query(&sql, parameters![number => INT8])?;
    }
    Ok(())
}

/// Reads the rows of a session, or `None` if it has calls without rows, or rows that say nothing.
pub(super) async fn of_session(
    shared: &SharedStore,
    session: SessionId,
) -> Result<Option<Vec<ListedChanges>>, Failure> {
    let sql = "SELECT s.id, u.session IS NOT NULL, c.position, c.path, c.change, c.object_before, c.bytes_before, c.object_after,
            c.bytes_after, c.counts
        FROM {schema}.sessions s LEFT JOIN {schema}.unlisted_changes u ON u.session = s.id
        LEFT JOIN {schema}.changes c ON c.session = s.id
        WHERE s.session = $1 AND s.created IS NOT NULL ORDER BY c.position, c.number";
    let rows = shared.server.read(sql, parameters![*session.as_uuid() => UUID]).await?;
    let first = rows.first().ok_or(StoreError::NotFound { session })?;
    if get::<bool>(first, 1)? {
        return Ok(None);
    }
    let mut listed: Vec<ListedChanges> = Vec::new();
    for row in &rows {
        let Some(position) = get::<Option<i64>>(row, 2)? else { break };
        let position = Position::new(position.cast_unsigned());
        let path: Option<String> = get(row, 3)?;
        match path {
            Some(path) => {
                let change = get::<Option<&str>>(row, 4)?.and_then(change_of);
                let Some(change) = change else { return Ok(None) };
                let (before, after) = (content_in(row, 5)?, content_in(row, 7)?);
                let changed = ChangedPath { path, change, before, after };
                match listed.last_mut() {
                    Some(ListedChanges { position: last, changes: Some(CallChanges::Paths(paths)) })
                        if *last == position =>
                    {
                        paths.push(changed);
                    }
                    _ => listed
                        .push(ListedChanges { position, changes: Some(CallChanges::Paths(vec![changed])) }),
                }
            }
            None => {
                let counts: Option<&str> = get(row, 9)?;
                let changes = match counts.map(serde_json::from_str) {
                    Some(Ok(counts)) => Some(CallChanges::Counts(counts)),
                    Some(Err(_)) => return Ok(None),
                    None => None,
                };
                listed.push(ListedChanges { position, changes });
            }
        }
    }
    Ok(Some(listed))
}

/// Decodes the columns of a content: its object and its size.
fn content_in(row: &Row, column: usize) -> Result<Option<FileContent>, Failure> {
    let object = get::<Option<&[u8]>>(row, column)?.map(id_in).transpose()?;
    let bytes: Option<i64> = get(row, column + 1)?;
    Ok(object.map(|object| FileContent { object, bytes: bytes.map(i64::cast_unsigned) }))
}

/// Finds the sessions that changed a path or something below it. The empty path stands for everything.
pub(super) async fn sessions_with(shared: &SharedStore, path: &str) -> Result<ChangingSessions, Failure> {
    // The byte after a slash is a zero digit. Only the beginnings of paths are indexed.
    let (from, to) = match path {
        "" => (String::new(), char::MAX.to_string()),
        path => (format!("{path}/"), format!("{path}0")),
    };
    let sql = "SELECT s.session FROM {schema}.sessions s WHERE s.created IS NOT NULL AND s.id IN (
            SELECT session FROM {schema}.changes WHERE left(path, 400) = left($1, 400) AND path = $1
            UNION SELECT session FROM {schema}.changes WHERE left(path, 400) >= left($2, 400) AND left(path, 400) <= left($3, 400)
                AND path > $2 AND path < $3
        ) ORDER BY s.created";
    let rows = shared.server.read(sql, parameters![path => TEXT, from => TEXT, to => TEXT]).await?;
    let certain = sessions_in(&rows)?;
    let sql = "SELECT s.session FROM {schema}.sessions s WHERE s.created IS NOT NULL AND s.id IN (
            SELECT session FROM {schema}.changes WHERE path IS NULL UNION SELECT session FROM {schema}.unlisted_changes
        ) ORDER BY s.created";
    let mut possible = sessions_in(&shared.server.read(sql, &[]).await?)?;
    let known: HashSet<SessionId> = certain.iter().copied().collect();
    possible.retain(|session| !known.contains(session));
    Ok(ChangingSessions { certain, possible })
}

fn sessions_in(rows: &[Row]) -> Result<Vec<SessionId>, Failure> {
    rows.iter().map(|row| Ok(SessionId::from_uuid(get::<Uuid>(row, 0)?))).collect()
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
