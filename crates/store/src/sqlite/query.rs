//! Queries over the index.
//!
//! SQL selects by the columns of the summaries. The status also depends on claims and inboxes, and whether a
//! holder is alive only its lock can tell. So rows are read in order and checked one by one until the page is
//! full: a page is short only at the end. A cursor is the number of a session, which never changes.

use std::ops::ControlFlow;

use backstitch_core::id::SessionId;
use backstitch_core::journal::{JournalState, SessionSummary};
use backstitch_core::ports::{
    IndexedSession, IndexedStatus, Owner, SessionCursor, SessionOrder, SessionPage, SessionPresence,
    SessionQuery, StoreError, TimeRange,
};
use rusqlite::types::Value;
use rusqlite::{Connection, Row, params_from_iter};

use super::claims::Locks;
use super::error::Failure;
use super::index::decode;
use super::presence::Presences;
use super::read::session_in;

/// Reads a page.
pub(super) fn page(
    locks: &Locks,
    connection: &Connection,
    query: &SessionQuery,
) -> Result<SessionPage, Failure> {
    let limit = query.limit.max(1);
    let mut page = SessionPage::default();
    let mut last = 0;
    scan(locks, connection, query, limit, |found, row| {
        if page.sessions.len() == limit {
            page.next = Some(SessionCursor::new(last.to_string()));
            return Ok(ControlFlow::Break(()));
        }
        last = found.number;
        page.sessions.push(IndexedSession {
            summary: decode(found.session, row.get_ref(Column::Summary as usize)?)?,
            holder: found.holder,
            has_waiting: found.has_waiting,
        });
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(page)
}

/// Counts the sessions from the cursor on.
pub(super) fn count(locks: &Locks, connection: &Connection, query: &SessionQuery) -> Result<u64, Failure> {
    let mut count = 0;
    scan(locks, connection, query, usize::MAX, |_, _| {
        count += 1;
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(count)
}

/// A row that fulfils the query, with what was joined.
struct FoundSession {
    number: i64,
    session: SessionId,
    holder: Option<Owner>,
    has_waiting: bool,
}

/// Columns of the selection, in order.
#[derive(Clone, Copy)]
enum Column {
    Number,
    Session,
    State,
    Summary,
}

/// Passes the sessions that fulfil a query, in order, until `each` ends the scan, which it does after `wanted` of them.
fn scan(
    locks: &Locks,
    connection: &Connection,
    query: &SessionQuery,
    wanted: usize,
    mut each: impl FnMut(FoundSession, &Row<'_>) -> Result<ControlFlow<()>, Failure>,
) -> Result<(), Failure> {
    // A status is known only once claims and inboxes are, so any number of sessions may be looked at.
    let looked_at = if query.statuses.is_empty() { wanted } else { usize::MAX };
    let presences = Presences::of(connection, looked_at)?;
    let selection = Selection::of(query)?;
    let mut sql = connection.prepare_cached(&selection.sql)?;
    let mut rows = sql.query(params_from_iter(selection.values))?;
    while let Some(row) = rows.next()? {
        let name = row.get_ref(Column::Session as usize)?;
        let session = session_in(name)?;
        let name = name.as_str().unwrap_or_default();
        let holder = match presences.claim(name)? {
            Some(claim) if locks.lives(session, claim.fence)? => Some(claim.owner),
            _ => None,
        };
        let has_waiting = presences.is_waited_for(name)?;
        if !query.statuses.is_empty() {
            let state = row.get_ref(Column::State as usize)?.as_str().ok().and_then(JournalState::of_word);
            let state = state.ok_or(StoreError::DamagedSummary { session })?;
            let status = IndexedStatus::of(state, SessionPresence { is_held: holder.is_some(), has_waiting });
            if !query.statuses.contains(&status) {
                continue;
            }
        }
        let number = row.get(Column::Number as usize)?;
        if each(FoundSession { number, session, holder, has_waiting }, row)?.is_break() {
            break;
        }
    }
    Ok(())
}

/// A statement with its parameters.
struct Selection {
    sql: String,
    values: Vec<Value>,
}

impl Selection {
    fn of(query: &SessionQuery) -> Result<Self, Failure> {
        let sql = "SELECT summaries.session, sessions.session, summaries.state, summaries.summary
            FROM summaries JOIN sessions ON sessions.id = summaries.session
            WHERE summaries.version >= ?"
            .to_owned();
        let mut selection = Self { sql, values: vec![Value::from(SessionSummary::VERSION)] };
        let states = query.statuses.iter().flat_map(|status| status.states());
        selection.any("summaries.state", states.map(|state| state.as_str()));
        selection.any("summaries.outcome", query.outcomes.iter().map(|outcome| outcome.as_str()));
        selection.any("summaries.origin", query.origins.iter().map(|origin| origin.as_str()));
        selection.any("summaries.parent", query.parents.iter().map(ToString::to_string));
        if let Some(sessions) = &query.sessions {
            selection.one_of("sessions.session", sessions.iter().map(ToString::to_string).collect());
        }
        selection.any("summaries.agent", query.agent.iter().cloned());
        selection.any("summaries.workspace", query.workspace.iter().cloned());
        selection.any("summaries.summary ->> '$.name'", query.name.iter().cloned());
        for (key, value) in &query.tags {
            selection.sql.push_str(
                " AND EXISTS (SELECT 1 FROM tags WHERE key = ? AND value = ? AND session = summaries.session)",
            );
            selection.values.extend([Value::from(key.clone()), Value::from(value.clone())]);
        }
        selection.range("summaries.created_at", query.created);
        selection.range("summaries.updated_at", query.updated);
        let (beyond, order) = match query.order {
            SessionOrder::NewestFirst => ("<", "DESC"),
            SessionOrder::OldestFirst => (">", "ASC"),
        };
        if let Some(cursor) = &query.after {
            let unknown = || StoreError::UnknownCursor { cursor: cursor.as_str().to_owned() };
            let number: i64 = cursor.as_str().parse().map_err(|_| unknown())?;
            selection.sql.push_str(&format!(" AND summaries.session {beyond} ?"));
            selection.values.push(number.into());
        }
        selection.sql.push_str(&format!(" ORDER BY summaries.session {order}"));
        Ok(selection)
    }

    /// Requires that a column has one of these values, if there are any.
    fn any<T: Into<String>>(&mut self, column: &str, wanted: impl IntoIterator<Item = T>) {
        let wanted: Vec<String> = wanted.into_iter().map(Into::into).collect();
        if !wanted.is_empty() {
            self.one_of(column, wanted);
        }
    }

    /// Requires that a column has one of these values.
    fn one_of(&mut self, column: &str, wanted: Vec<String>) {
        // One parameter however many values there are, so that the statement stays the same.
        self.sql.push_str(&format!(" AND {column} IN (SELECT value FROM json_each(?))"));
        self.values.push(serde_json::Value::from(wanted).to_string().into());
    }

    fn range(&mut self, column: &str, range: TimeRange) {
        for (bound, comparison) in [(range.since, ">="), (range.until, "<")] {
            if let Some(bound) = bound {
                self.sql.push_str(&format!(" AND {column} {comparison} ?"));
                self.values.push(bound.to_string().into());
            }
        }
    }
}
