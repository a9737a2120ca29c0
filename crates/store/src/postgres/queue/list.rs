//! What the queue holds: pages, counts, limits and schedules.

use backstitch_core::id::SessionId;
use backstitch_core::ports::{
    QueueCount, QueueLimit, QueuePage, QueueQuery, QueuedSession, Schedule, SessionCursor, StoreError,
};
use backstitch_core::time::Timestamp;
use uuid::Uuid;

use super::entries::{ENTRY, entry_in};
use crate::postgres::error::{Failure, corrupt};
use crate::postgres::schema::get;
use crate::postgres::server::parameters;
use crate::postgres::store::SharedStore;
use crate::queue_rows::{state_of, state_word, time_of};

/// The state of a row: one whose time has come counts as ready.
const STATE: &str = "CASE WHEN q.state = 'waiting' AND q.due <= now() THEN 'ready' ELSE q.state END";

/// A page of the queue.
pub(super) async fn page(shared: &SharedStore, query: &QueueQuery) -> Result<QueuePage, Failure> {
    let unknown = |cursor: &SessionCursor| StoreError::UnknownCursor { cursor: cursor.as_str().to_owned() };
    let after: i64 = match &query.after {
        Some(cursor) => cursor.as_str().parse().map_err(|_| unknown(cursor))?,
        None => 0,
    };
    let sql = format!(
        "SELECT s.created, s.session, {STATE}, q.attempts, q.reason, {ENTRY}
        FROM {{schema}}.queue q JOIN {{schema}}.sessions s ON s.id = q.session
        WHERE s.created > $1 AND ($2::text IS NULL OR {STATE} = $2) AND ($3::text IS NULL OR q.agent = $3)
            AND ($4::uuid IS NULL OR s.session = $4)
        ORDER BY s.created LIMIT $5"
    );
    let limit = query.limit.max(1);
    let only = query.session.map(|session| *session.as_uuid());
    let values = parameters![
        after => INT8, query.state.map(state_word) => TEXT, query.agent => TEXT, only => UUID,
        i64::try_from(limit).unwrap_or(i64::MAX) => INT8
    ];
    let rows = shared.server.read(&sql, values).await?;
    let next = match rows.last().filter(|_| rows.len() == limit) {
        Some(row) => Some(SessionCursor::new(get::<i64>(row, 0)?.to_string())),
        None => None,
    };
    let queued = rows.iter().map(|row| {
        Ok(QueuedSession {
            session: SessionId::from_uuid(get::<Uuid>(row, 1)?),
            entry: entry_in(row, 5)?,
            state: state_of(get(row, 2)?)?,
            attempts: u32::try_from(get::<i32>(row, 3)?)
                .map_err(|_| corrupt("the queue has an invalid count"))?,
            reason: get(row, 4)?,
        })
    });
    Ok(QueuePage { sessions: queued.collect::<Result<_, Failure>>()?, next })
}

/// Numbers of sessions by agent and state.
pub(super) async fn counts(shared: &SharedStore) -> Result<Vec<QueueCount>, Failure> {
    let sql =
        format!("SELECT q.agent, {STATE}, count(*) FROM {{schema}}.queue q GROUP BY 1, 2 ORDER BY 1, 2");
    let rows = shared.server.read(&sql, &[]).await?;
    let counts = rows.iter().map(|row| {
        let (state, sessions) = (state_of(get(row, 1)?)?, get::<i64>(row, 2)?.cast_unsigned());
        Ok(QueueCount { agent: get(row, 0)?, state, sessions })
    });
    counts.collect()
}

/// The earliest time of a waiting session of these agents, or of a schedule.
pub(super) async fn next_due(
    shared: &SharedStore,
    agents: Vec<String>,
) -> Result<Option<Timestamp>, Failure> {
    let sql = "SELECT least(
            (SELECT (extract(epoch FROM q.due) * 1000000)::bigint FROM {schema}.queue q
                WHERE q.state = 'waiting' AND q.due IS NOT NULL AND q.agent = ANY ($1) ORDER BY q.due LIMIT 1),
            (SELECT min(next) FROM {schema}.schedules))";
    let rows = shared.server.read(sql, parameters![agents => TEXT_ARRAY]).await?;
    let due: Option<i64> = rows.first().map(|row| get(row, 0)).transpose()?.flatten();
    Ok(due.map(time_of).transpose()?)
}

/// All limits, with the numbers of held sessions.
pub(super) async fn limits(shared: &SharedStore) -> Result<Vec<QueueLimit>, Failure> {
    let sql = "SELECT l.tag, l.most,
            (SELECT count(*) FROM {schema}.queue q WHERE q.state = 'held' AND l.tag = ANY (q.tags))
        FROM {schema}.limits l ORDER BY l.tag";
    let rows = shared.server.read(sql, &[]).await?;
    let limits = rows.iter().map(|row| {
        let most =
            u32::try_from(get::<i64>(row, 1)?).map_err(|_| corrupt("the queue has an invalid limit"))?;
        Ok(QueueLimit { tag: get(row, 0)?, most, held: get::<i64>(row, 2)?.cast_unsigned() })
    });
    limits.collect()
}

/// Sets or removes a limit.
pub(super) async fn set_limit(shared: &SharedStore, tag: &str, most: Option<u32>) -> Result<(), Failure> {
    shared.check_writable()?;
    let Some(most) = most else {
        let sql = "DELETE FROM {schema}.limits WHERE tag = $1";
        return shared.server.read(sql, parameters![tag => TEXT]).await.map(drop);
    };
    let sql = "INSERT INTO {schema}.limits (tag, most) VALUES ($1, $2) ON CONFLICT (tag) DO UPDATE SET most = excluded.most";
    shared.server.read(sql, parameters![tag => TEXT, i64::from(most) => INT8]).await.map(drop)
}

/// All schedules.
pub(super) async fn schedules(shared: &SharedStore) -> Result<Vec<Schedule>, Failure> {
    let sql = "SELECT name, cron, request, next, last FROM {schema}.schedules ORDER BY name";
    let rows = shared.server.read(sql, &[]).await?;
    let schedules = rows.iter().map(|row| {
        let last: Option<Uuid> = get(row, 4)?;
        Ok(Schedule {
            name: get(row, 0)?,
            cron: get(row, 1)?,
            request: serde_json::from_str(get(row, 2)?)
                .map_err(|_| corrupt("a schedule is not as it was written"))?,
            next: time_of(get(row, 3)?)?,
            last: last.map(SessionId::from_uuid),
        })
    });
    schedules.collect()
}

/// Adds or replaces a schedule.
pub(super) async fn put_schedule(shared: &SharedStore, schedule: Schedule) -> Result<(), Failure> {
    shared.check_writable()?;
    let sql = "INSERT INTO {schema}.schedules (name, cron, request, next, last) VALUES ($1, $2, $3, $4, $5)
        ON CONFLICT (name) DO UPDATE SET cron = excluded.cron, request = excluded.request, next = excluded.next, last = excluded.last";
    let last = schedule.last.map(|last| *last.as_uuid());
    let values = parameters![
        schedule.name => TEXT, schedule.cron => TEXT, schedule.request.to_string() => TEXT,
        schedule.next.unix_micros() => INT8, last => UUID
    ];
    shared.server.read(sql, values).await.map(drop)
}

/// Removes a schedule. Returns whether there was one. An answer that was lost is asked for again, and then there is none.
pub(super) async fn remove_schedule(shared: &SharedStore, name: &str) -> Result<bool, Failure> {
    shared.check_writable()?;
    let sql = "DELETE FROM {schema}.schedules WHERE name = $1 RETURNING 1";
    Ok(!shared.server.read(sql, parameters![name => TEXT]).await?.is_empty())
}

/// Sets the next time of a schedule, if it still has this one.
pub(super) async fn advance_schedule(
    shared: &SharedStore,
    name: &str,
    (due, next): (Timestamp, Timestamp),
    session: SessionId,
) -> Result<bool, Failure> {
    shared.check_writable()?;
    let sql = "UPDATE {schema}.schedules SET next = $3, last = $4 WHERE name = $1 AND next = $2 RETURNING 1";
    let values = parameters![
        name => TEXT, due.unix_micros() => INT8, next.unix_micros() => INT8, *session.as_uuid() => UUID
    ];
    Ok(!shared.server.read(sql, values).await?.is_empty())
}
