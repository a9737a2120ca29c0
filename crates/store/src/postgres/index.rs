//! The index: a summary of each session.
//!
//! A summary is written in the transaction of its batch, so it always describes the head. A batch without one deletes the row, and the session counts as not indexed until
//! a caller that can fold its journal puts a summary. The columns repeat what queries select by; the rest is JSON.

use std::collections::BTreeMap;

use backstitch_core::id::SessionId;
use backstitch_core::journal::SessionSummary;
use backstitch_core::ports::{OriginKind, StoreError};
use uuid::Uuid;

use super::claims::plain;
use super::error::Failure;
use super::link::Link;
use super::schema::get;
use super::server::parameters;
use super::store::SharedStore;

/// A summary with its columns encoded.
pub(super) struct PreparedSummary {
    session: SessionId,
    position: i64,
    pub(super) version: i32,
    pub(super) text: String,
    /// Columns that repeat what the summary says, in the order of the table.
    pub(super) columns: [Option<String>; 9],
    tags: BTreeMap<String, String>,
}

impl PreparedSummary {
    pub(super) fn new(summary: &SessionSummary) -> Result<Self, StoreError> {
        let text = serde_json::to_string(summary).map_err(|error| StoreError::Backend(error.into()))?;
        let columns = [
            Some(summary.created_at.to_string()),
            Some(summary.updated_at.to_string()),
            Some(summary.state.as_str().to_owned()),
            summary.outcome.map(|outcome| outcome.as_str().to_owned()),
            summary.agent.as_deref().map(plain),
            summary.workspace.as_deref().map(plain),
            Some(OriginKind::from(&summary.origin).as_str().to_owned()),
            summary.origin.parent().map(|parent| parent.to_string()),
            summary.name.as_deref().map(plain),
        ];
        let tags = summary.tags.iter().map(|(key, value)| (plain(key), plain(value))).collect();
        let position = summary.position.number().cast_signed();
        Ok(Self {
            session: summary.session,
            position,
            version: version(summary.version),
            text,
            columns,
            tags,
        })
    }

    pub(super) fn tag_keys(&self) -> Vec<String> {
        self.tags.keys().cloned().collect()
    }

    pub(super) fn tag_values(&self) -> Vec<String> {
        self.tags.values().cloned().collect()
    }
}

/// The version of a summary, as a column holds it.
fn version(version: impl TryInto<i32>) -> i32 {
    version.try_into().unwrap_or(i32::MAX)
}

/// The version of summaries that this program understands.
pub(super) fn current_version() -> i32 {
    version(SessionSummary::VERSION)
}

/// Replaces the summary of a session if this one describes its head. Returns whether it does.
pub(super) async fn put(shared: &SharedStore, summary: &SessionSummary) -> Result<bool, Failure> {
    shared.check_writable()?;
    let prepared = PreparedSummary::new(summary)?;
    let (session, tags, values) = (prepared.session, prepared.tag_keys(), prepared.tag_values());
    // A summary that is put again is the same.
    let sql = "SELECT {schema}.put_summary_1($1, $2, $3, $4, $5, $6, $7)";
    let values = parameters![
        *session.as_uuid() => UUID, prepared.position => INT8, prepared.text => TEXT, prepared.version => INT4,
        &prepared.columns[..] => TEXT_ARRAY, tags => TEXT_ARRAY, values => TEXT_ARRAY
    ];
    let rows = shared.server.read(sql, values).await?;
    let put: Option<bool> = rows.first().map(|row| get(row, 0)).transpose()?.flatten();
    Ok(put.ok_or(StoreError::NotFound { session })?)
}

/// Decodes a stored summary.
pub(super) fn decode(session: SessionId, text: &str) -> Result<SessionSummary, StoreError> {
    let found: Option<SessionSummary> = serde_json::from_str(text).ok();
    found.filter(|summary| summary.session == session).ok_or(StoreError::DamagedSummary { session })
}

/// Reads the summary of a session, or `None` if it has no current one. Fails with `DamagedSummary` if columns or tags say something else than
/// the summary itself.
pub(super) async fn read(
    shared: &SharedStore,
    session: SessionId,
) -> Result<Option<SessionSummary>, Failure> {
    let sql = "SELECT m.summary, m.position, m.created_at, m.updated_at, m.state, m.outcome, m.agent, m.workspace, m.origin, m.parent, m.name,
            (SELECT array_agg(t.key ORDER BY t.key) FROM {schema}.tags t WHERE t.session = s.id),
            (SELECT array_agg(t.value ORDER BY t.key) FROM {schema}.tags t WHERE t.session = s.id)
        FROM {schema}.sessions s LEFT JOIN {schema}.summaries m ON m.session = s.id AND m.version >= $2
        WHERE s.session = $1 AND s.created IS NOT NULL";
    let values = parameters![*session.as_uuid() => UUID, current_version() => INT4];
    let rows = shared.server.read(sql, values).await?;
    let row = rows.first().ok_or(StoreError::NotFound { session })?;
    let Some(text) = get::<Option<String>>(row, 0)? else { return Ok(None) };
    let summary = decode(session, &text)?;
    let expected = PreparedSummary::new(&summary)?;
    let columns: Vec<Option<String>> = (2..11).map(|index| get(row, index)).collect::<Result<_, _>>()?;
    let keys: Vec<String> = get::<Option<Vec<String>>>(row, 11)?.unwrap_or_default();
    let values: Vec<String> = get::<Option<Vec<String>>>(row, 12)?.unwrap_or_default();
    let tags: BTreeMap<String, String> = keys.into_iter().zip(values).collect();
    if columns != expected.columns || get::<i64>(row, 1)? != expected.position || tags != expected.tags {
        return Err(StoreError::DamagedSummary { session }.into());
    }
    Ok(Some(summary))
}

/// Lists sessions without a current summary, in the order of creation.
pub(super) async fn list_unindexed(shared: &SharedStore, limit: usize) -> Result<Vec<SessionId>, Failure> {
    let sql = "SELECT session FROM {schema}.sessions s WHERE created IS NOT NULL AND NOT EXISTS
        (SELECT FROM {schema}.summaries m WHERE m.session = s.id AND m.version >= $1) ORDER BY created LIMIT $2";
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = shared.server.read(sql, parameters![current_version() => INT4, limit => INT8]).await?;
    rows.iter().map(|row| Ok(SessionId::from_uuid(get::<Uuid>(row, 0)?))).collect()
}

/// Deletes summaries of sessions that do not exist, which only damage leaves, and returns their number. Changed paths of records that do not exist are deleted
/// too.
pub(super) fn remove_strays(link: &Link<'_>) -> Result<u64, Failure> {
    link.transact(|| {
        let strays = strays(link)?;
        for table in ["summaries", "tags"] {
            let sql = format!("DELETE FROM {{schema}}.{table} WHERE session = ANY ($1)");
            link.query(&sql, parameters![strays => INT8_ARRAY])?;
        }
        link.query(
            "DELETE FROM {schema}.changes c WHERE NOT EXISTS
                (SELECT FROM {schema}.records r WHERE r.session = c.session AND r.position = c.position)",
            &[],
        )?;
        let sql = "DELETE FROM {schema}.unlisted_changes WHERE session NOT IN
            (SELECT id FROM {schema}.sessions WHERE created IS NOT NULL)";
        link.query(sql, &[])?;
        Ok(strays.len() as u64)
    })
}

/// Numbers of sessions that do not exist and have a summary.
pub(super) fn strays(link: &Link<'_>) -> Result<Vec<i64>, Failure> {
    let sql = "SELECT session FROM {schema}.summaries WHERE session NOT IN (SELECT id FROM {schema}.sessions WHERE created IS NOT NULL)
        UNION SELECT session FROM {schema}.tags WHERE session NOT IN (SELECT id FROM {schema}.sessions WHERE created IS NOT NULL)";
    link.query(sql, &[])?.iter().map(|row| get(row, 0)).collect()
}

/// Deletes the summary of a session, which then counts as not indexed. The caller has begun a transaction.
pub(super) fn forget(link: &Link<'_>, number: i64) -> Result<(), Failure> {
    for table in ["summaries", "tags"] {
        let sql = format!("DELETE FROM {{schema}}.{table} WHERE session = $1");
        link.query(&sql, parameters![number => INT8])?;
    }
    Ok(())
}
