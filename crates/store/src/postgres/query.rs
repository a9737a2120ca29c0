//! Queries over the index.
//!
//! SQL selects by the columns of the summaries, and joins claims and inboxes. Which workers live is read first; a worker that registers meanwhile holds nothing that this query would show
//! otherwise. A cursor is the number of a session in the order of creation, which never changes.

use backstitch_core::id::SessionId;
use backstitch_core::ports::{
    IndexedSession, IndexedStatus, Owner, SessionCursor, SessionOrder, SessionPage, SessionPresence,
    SessionQuery, StoreError, TimeRange,
};
use tokio_postgres::types::{ToSql, Type};
use uuid::Uuid;

use super::claims::plain;
use super::error::Failure;
use super::index::{current_version, decode};
use super::lease;
use super::schema::get;
use super::server::Parameter;
use super::store::SharedStore;

/// The most rows that a statement reads.
const PAGE: usize = 1_000;

/// Reads a page.
pub(super) async fn page(shared: &SharedStore, query: &SessionQuery) -> Result<SessionPage, Failure> {
    let limit = query.limit.max(1);
    let living = lease::living(&shared.server, &shared.lease).await?;
    let mut page = SessionPage::default();
    let mut after = cursor_of(query)?;
    loop {
        // One more shows whether there is a next page.
        let wanted = (limit - page.sessions.len()).saturating_add(1).min(PAGE);
        let selection = Selection::of(query, after, living.clone());
        let sql = selection.statement(query.order, wanted);
        let rows = shared.server.read(&sql, &selection.parameters()).await?;
        for row in &rows {
            if page.sessions.len() == limit {
                page.next = after.map(|last| SessionCursor::new(last.to_string()));
                return Ok(page);
            }
            let session = SessionId::from_uuid(get::<Uuid>(row, 1)?);
            let summary = decode(session, get(row, 2)?)?;
            let (owner, has_waiting): (Option<String>, bool) = (get(row, 3)?, get(row, 4)?);
            page.sessions.push(IndexedSession { summary, holder: owner.map(Owner::new), has_waiting });
            after = Some(get(row, 0)?);
        }
        if rows.len() < wanted {
            return Ok(page);
        }
    }
}

/// Counts the sessions from the cursor on.
pub(super) async fn count(shared: &SharedStore, query: &SessionQuery) -> Result<u64, Failure> {
    let living = lease::living(&shared.server, &shared.lease).await?;
    let selection = Selection::of(query, cursor_of(query)?, living);
    let sql = format!("SELECT count(*) FROM ({}) AS found", selection.sql);
    let rows = shared.server.read(&sql, &selection.parameters()).await?;
    Ok(rows.first().map(|row| get::<i64>(row, 0)).transpose()?.unwrap_or_default().cast_unsigned())
}

fn cursor_of(query: &SessionQuery) -> Result<Option<i64>, StoreError> {
    let Some(cursor) = &query.after else { return Ok(None) };
    let unknown = || StoreError::UnknownCursor { cursor: cursor.as_str().to_owned() };
    cursor.as_str().parse().map(Some).map_err(|_| unknown())
}

/// A statement with its parameters.
struct Selection {
    sql: String,
    values: Vec<(Box<dyn ToSql + Sync + Send>, Type)>,
}

impl Selection {
    fn of(query: &SessionQuery, after: Option<i64>, living: Vec<Uuid>) -> Self {
        let sql = "SELECT s.created, s.session, m.summary,
                CASE WHEN s.claim IS NOT NULL AND s.worker = ANY ($1) THEN s.owner END AS holder,
                EXISTS (SELECT FROM {schema}.inbox i WHERE i.session = s.id) AS has_waiting
            FROM {schema}.summaries m JOIN {schema}.sessions s ON s.id = m.session
            WHERE s.created IS NOT NULL AND m.version >= $2"
            .to_owned();
        let mut selection = Self { sql, values: Vec::new() };
        selection.values.push((Box::new(living), Type::UUID_ARRAY));
        selection.values.push((Box::new(current_version()), Type::INT4));
        selection.any("m.outcome", query.outcomes.iter().map(|outcome| outcome.as_str()));
        selection.any("m.origin", query.origins.iter().map(|origin| origin.as_str()));
        selection.any("m.parent", query.parents.iter().map(ToString::to_string));
        if let Some(sessions) = &query.sessions {
            let sessions: Vec<Uuid> = sessions.iter().map(|session| *session.as_uuid()).collect();
            let place = selection.add(sessions, Type::UUID_ARRAY);
            selection.sql.push_str(&format!(" AND s.session = ANY ({place})"));
        }
        selection.any("m.agent", query.agent.iter().map(|agent| plain(agent)));
        selection.any("m.name", query.name.iter().map(|name| plain(name)));
        selection.any("m.workspace", query.workspace.iter().map(|workspace| plain(workspace)));
        for (key, value) in &query.tags {
            let (key, value) =
                (selection.add(plain(key), Type::TEXT), selection.add(plain(value), Type::TEXT));
            selection.sql.push_str(&format!(
                " AND EXISTS (SELECT FROM {{schema}}.tags t WHERE left(t.key, 100) = left({key}, 100)
                    AND left(t.value, 100) = left({value}, 100) AND t.key = {key} AND t.value = {value} AND t.session = s.id)"
            ));
        }
        selection.range("m.created_at", query.created);
        selection.range("m.updated_at", query.updated);
        selection.statuses(&query.statuses);
        if let Some(after) = after {
            let place = selection.add(after, Type::INT8);
            let beyond = match query.order {
                SessionOrder::NewestFirst => "<",
                SessionOrder::OldestFirst => ">",
            };
            selection.sql.push_str(&format!(" AND s.created {beyond} {place}"));
        }
        selection
    }

    /// The statement for a page.
    fn statement(&self, order: SessionOrder, rows: usize) -> String {
        let order = match order {
            SessionOrder::NewestFirst => "DESC",
            SessionOrder::OldestFirst => "ASC",
        };
        format!("{} ORDER BY s.created {order} LIMIT {rows}", self.sql)
    }

    fn parameters(&self) -> Vec<Parameter<'_>> {
        self.values.iter().map(|(value, kind)| (&**value as &(dyn ToSql + Sync), kind.clone())).collect()
    }

    /// Adds a parameter, and returns its place.
    fn add(&mut self, value: impl ToSql + Sync + Send + 'static, kind: Type) -> String {
        self.values.push((Box::new(value), kind));
        format!("${}", self.values.len())
    }

    /// Requires that a column has one of these values, if there are any.
    fn any<T: Into<String>>(&mut self, column: &str, wanted: impl IntoIterator<Item = T>) {
        let wanted: Vec<String> = wanted.into_iter().map(Into::into).collect();
        if !wanted.is_empty() {
            let place = self.add(wanted, Type::TEXT_ARRAY);
            self.sql.push_str(&format!(" AND {column} = ANY ({place})"));
        }
    }

    fn range(&mut self, column: &str, range: TimeRange) {
        for (time, relation) in [(range.since, ">="), (range.until, "<")] {
            if let Some(time) = time {
                let place = self.add(time.to_string(), Type::TEXT);
                self.sql.push_str(&format!(" AND {column} {relation} {place}"));
            }
        }
    }

    /// Requires one of these statuses, if there are any: a status is a state with what is known beside the journal.
    fn statuses(&mut self, wanted: &[IndexedStatus]) {
        if wanted.is_empty() {
            return;
        }
        let held = "(s.claim IS NOT NULL AND s.worker = ANY ($1))";
        let waiting = "EXISTS (SELECT FROM {schema}.inbox i WHERE i.session = s.id)";
        let mut accepted: Vec<String> = Vec::new();
        for state in wanted.iter().flat_map(|status| status.states()) {
            for (is_held, has_waiting) in [(false, false), (false, true), (true, false), (true, true)] {
                if wanted.contains(&IndexedStatus::of(*state, SessionPresence { is_held, has_waiting })) {
                    let one = format!(
                        "(m.state = '{}' AND {held} = {is_held} AND {waiting} = {has_waiting})",
                        state.as_str()
                    );
                    if !accepted.contains(&one) {
                        accepted.push(one);
                    }
                }
            }
        }
        self.sql.push_str(&format!(" AND ({})", accepted.join(" OR ")));
    }
}
