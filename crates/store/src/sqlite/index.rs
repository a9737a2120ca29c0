//! The index: a summary of each session.
//!
//! A summary is written in the transaction of its batch, so it always describes the head. A batch without one
//! deletes the row, and the session counts as not indexed until a caller that can fold its journal puts a
//! summary. The columns repeat what queries select by; the rest is JSON.

use std::collections::BTreeMap;

use backstitch_core::id::SessionId;
use backstitch_core::journal::SessionSummary;
use backstitch_core::ports::{OriginKind, StoreError};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, params};

use super::changes;
use super::error::Failure;
use super::keys::{end_of, number_of};
use super::read::{existing, session_in};
use super::sql::{execute, first, rows};
use super::store::SqliteStore;

/// A summary with its columns encoded.
pub(super) struct PreparedSummary {
    summary: SessionSummary,
    /// The session's id in its stored form.
    name: String,
    /// Columns that repeat what the summary says, in the order of the table.
    columns: [Option<String>; 8],
    text: String,
}

impl PreparedSummary {
    pub(super) fn new(summary: &SessionSummary) -> Result<Self, Failure> {
        let text = serde_json::to_string(summary).map_err(|error| StoreError::Backend(error.into()))?;
        let columns = [
            Some(summary.created_at.to_string()),
            Some(summary.updated_at.to_string()),
            Some(summary.state.as_str().to_owned()),
            summary.outcome.map(|outcome| outcome.as_str().to_owned()),
            summary.agent.as_deref().map(str::to_owned),
            summary.workspace.as_deref().map(str::to_owned),
            Some(OriginKind::from(&summary.origin).as_str().to_owned()),
            summary.origin.parent().map(|parent| parent.to_string()),
        ];
        Ok(Self { summary: summary.clone(), name: summary.session.to_string(), columns, text })
    }

    /// Writes the summary of a session after a batch. What never changes (tags, origin and time of creation)
    /// is written with the first one.
    pub(super) fn write(&self, connection: &Connection, number: i64) -> Result<(), Failure> {
        let (version, position) = (self.summary.version, self.summary.position.number().cast_signed());
        let [_, updated_at, state, outcome, agent, workspace, ..] = &self.columns;
        let sql = "UPDATE summaries SET version = ?2, position = ?3, updated_at = ?4, state = ?5,
            outcome = ?6, agent = ?7, workspace = ?8, summary = ?9 WHERE session = ?1";
        let values =
            params![number, version, position, updated_at, state, outcome, agent, workspace, self.text];
        match connection.prepare_cached(sql)?.execute(values)? {
            0 => self.insert(connection, number),
            _ => Ok(()),
        }
    }

    fn insert(&self, connection: &Connection, number: i64) -> Result<(), Failure> {
        let (version, position) = (self.summary.version, self.summary.position.number().cast_signed());
        let [created_at, updated_at, state, outcome, agent, workspace, origin, parent] = &self.columns;
        let sql = "INSERT INTO summaries (session, version, position, created_at, updated_at, state, outcome,
            agent, workspace, origin, parent, summary)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)";
        let values = params![
            number, version, position, created_at, updated_at, state, outcome, agent, workspace, origin,
            parent, self.text
        ];
        execute(connection, sql, values)?;
        let sql = "INSERT OR IGNORE INTO tags (key, value, session) VALUES (?1, ?2, ?3)";
        let mut tags = self.summary.tags.iter();
        tags.try_for_each(|(key, value)| execute(connection, sql, params![key, value, number]))
    }

    /// Replaces the summary of a session if this one describes its head. Returns whether it does.
    pub(super) fn put(&self, connection: &Connection) -> Result<bool, Failure> {
        let session = self.summary.session;
        let number = number_of(connection, &self.name)?.ok_or(StoreError::NotFound { session })?;
        if end_of(connection, session, number)?.0 != self.summary.position {
            return Ok(false);
        }
        forget(connection, number)?;
        self.insert(connection, number)?;
        Ok(true)
    }
}

/// Deletes the summary of a session, which then counts as not indexed.
pub(super) fn forget(connection: &Connection, number: i64) -> Result<(), Failure> {
    let sql = "DELETE FROM summaries WHERE session = ?1";
    execute(connection, sql, [number])?;
    // Tags may be left without their summary only by damage.
    execute(connection, "DELETE FROM tags WHERE session = ?1", [number])
}

/// Reads the summary of a session, or `None` if it has no current one. Fails with `DamagedSummary` if columns or
/// tags say something else than the summary itself.
pub(super) fn get(connection: &Connection, session: SessionId) -> Result<Option<SessionSummary>, Failure> {
    let number = existing(connection, session)?;
    let sql =
        "SELECT summary, position, created_at, updated_at, state, outcome, agent, workspace, origin, parent
        FROM summaries WHERE session = ?1 AND version >= ?2";
    let found = first(connection, sql, params![number, SessionSummary::VERSION], |row| {
        let columns = (2..10).map(|index| row.get(index)).collect::<Result<Vec<Option<String>>, _>>()?;
        Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?, columns))
    })?;
    let Some((text, position, columns)) = found else { return Ok(None) };
    let summary = decode(session, ValueRef::from(text.as_str()))?;
    let expected = PreparedSummary::new(&summary)?.columns;
    let sql = "SELECT key, value FROM tags WHERE session = ?1";
    let tags: BTreeMap<String, String> =
        rows(connection, sql, [number], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let position = position.cast_unsigned();
    if columns != expected || position != summary.position.number() || tags != summary.tags {
        return Err(StoreError::DamagedSummary { session }.into());
    }
    Ok(Some(summary))
}

impl SqliteStore {
    /// Deletes summaries of sessions that do not exist, which only damage leaves, and returns their number. Changed paths of
    /// records that do not exist are deleted too.
    pub fn remove_stray_summaries(&self) -> Result<u64, StoreError> {
        self.writer()?.transact(|connection| {
            let strays = strays(connection)?;
            strays.iter().try_for_each(|number| forget(connection, *number))?;
            changes::forget_strays(connection)?;
            Ok(strays.len() as u64)
        })
    }
}

/// Numbers of sessions that do not exist and have a summary.
pub(super) fn strays(connection: &Connection) -> Result<Vec<i64>, Failure> {
    let sql = "SELECT session FROM summaries WHERE session NOT IN (SELECT id FROM sessions)
        UNION SELECT session FROM tags WHERE session NOT IN (SELECT id FROM sessions)";
    rows(connection, sql, [], |row| Ok(row.get(0)?))
}

/// Decodes a stored summary.
pub(super) fn decode(session: SessionId, stored: ValueRef<'_>) -> Result<SessionSummary, Failure> {
    let text = stored.as_str().ok();
    let found: Option<SessionSummary> = text.and_then(|text| serde_json::from_str(text).ok());
    let found = found.filter(|summary| summary.session == session);
    Ok(found.ok_or(StoreError::DamagedSummary { session })?)
}

/// Lists sessions without a current summary, in the order of creation.
pub(super) fn unindexed(connection: &Connection, limit: usize) -> Result<Vec<SessionId>, Failure> {
    let sql = "SELECT session FROM sessions NOT INDEXED WHERE NOT EXISTS
        (SELECT 1 FROM summaries WHERE summaries.session = sessions.id AND version >= ?1)
        ORDER BY id LIMIT ?2";
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    rows(connection, sql, params![SessionSummary::VERSION, limit], |row| session_in(row.get_ref(0)?))
}
