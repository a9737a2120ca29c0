//! What the queue holds: pages, counts, limits and schedules.

use std::collections::HashMap;

use backstitch_core::id::SessionId;
use backstitch_core::ports::{
    QueueCount, QueueLimit, QueuePage, QueueQuery, QueuedSession, Schedule, SessionCursor, StoreError,
};
use backstitch_core::time::Timestamp;
use rusqlite::{Connection, params};

use super::entries::{ENTRY, corrupt, entry_in};
use crate::queue_rows::{state_of, state_word, time_of};
use crate::sqlite::error::Failure;
use crate::sqlite::keys::number_of;
use crate::sqlite::read::session_in;
use crate::sqlite::sql::{execute, first, rows};
use crate::time::now;

/// The state of a row: one whose time has come counts as ready. The parameter is the time.
const STATE: &str =
    "iif(queue.state = 'waiting' AND queue.due IS NOT NULL AND queue.due <= ?1, 'ready', queue.state)";

/// Names as a parameter of a statement.
pub(super) fn agents_text(agents: &[String]) -> Result<String, Failure> {
    Ok(serde_json::to_string(agents).map_err(|error| StoreError::Backend(error.into()))?)
}

/// A page of the queue.
pub(super) fn page(connection: &Connection, query: &QueueQuery) -> Result<QueuePage, Failure> {
    let after: i64 = match &query.after {
        Some(cursor) => cursor
            .as_str()
            .parse()
            .map_err(|_| StoreError::UnknownCursor { cursor: cursor.as_str().to_owned() })?,
        None => 0,
    };
    let only = match query.session {
        Some(session) => match number_of(connection, &session.to_string())? {
            None => return Ok(QueuePage::default()),
            number => number,
        },
        None => None,
    };
    let sql = format!(
        "SELECT queue.session, sessions.session, {STATE}, queue.attempts, queue.reason, {ENTRY}
        FROM queue JOIN sessions ON sessions.id = queue.session
        WHERE queue.session > ?2 AND (?3 IS NULL OR {STATE} = ?3) AND (?4 IS NULL OR queue.agent = ?4)
            AND (?5 IS NULL OR queue.session = ?5)
        ORDER BY queue.session LIMIT ?6"
    );
    let limit = query.limit.max(1);
    let (state, most) = (query.state.map(state_word), i64::try_from(limit).unwrap_or(i64::MAX));
    let values = params![now().unix_micros(), after, state, query.agent, only, most];
    let found: Vec<(i64, QueuedSession)> = rows(connection, &sql, values, |row| {
        let (state, attempts): (String, i64) = (row.get(2)?, row.get(3)?);
        let queued = QueuedSession {
            session: session_in(row.get_ref(1)?)?,
            entry: entry_in(row, 5)?,
            state: state_of(&state)?,
            attempts: u32::try_from(attempts).map_err(|_| corrupt("the queue has an invalid count"))?,
            reason: row.get(4)?,
        };
        Ok((row.get(0)?, queued))
    })?;
    let next = found.last().filter(|_| found.len() == limit).map(|(number, _)| number.to_string());
    let sessions = found.into_iter().map(|(_, queued)| queued).collect();
    Ok(QueuePage { sessions, next: next.map(SessionCursor::new) })
}

/// Numbers of sessions by agent and state.
pub(super) fn counts(connection: &Connection) -> Result<Vec<QueueCount>, Failure> {
    let sql = format!("SELECT agent, {STATE}, count(*) FROM queue GROUP BY 1, 2 ORDER BY 1, 2");
    rows(connection, &sql, [now().unix_micros()], |row| {
        let (state, sessions): (String, i64) = (row.get(1)?, row.get(2)?);
        Ok(QueueCount { agent: row.get(0)?, state: state_of(&state)?, sessions: sessions.cast_unsigned() })
    })
}

/// The earliest time of a waiting session of these agents, or of a schedule.
pub(super) fn next_due(connection: &Connection, agents: &[String]) -> Result<Option<Timestamp>, Failure> {
    let sql = "SELECT due FROM queue WHERE state = 'waiting' AND due IS NOT NULL
            AND agent IN (SELECT value FROM json_each(?1)) ORDER BY due LIMIT 1";
    let waiting: Option<i64> = first(connection, sql, [agents_text(agents)?], |row| row.get(0))?;
    let scheduled: Option<Option<i64>> =
        first(connection, "SELECT min(next) FROM schedules", [], |row| row.get(0))?;
    let earliest = waiting.into_iter().chain(scheduled.flatten()).min();
    Ok(earliest.map(time_of).transpose()?)
}

/// All limits, with the numbers of held sessions.
pub(super) fn limits(connection: &Connection) -> Result<Vec<QueueLimit>, Failure> {
    let sql = "SELECT limits.tag, limits.most, (SELECT count(*) FROM queue, json_each(queue.tags) AS tags
            WHERE queue.state = 'held' AND tags.value = limits.tag)
        FROM limits ORDER BY limits.tag";
    rows(connection, sql, [], |row| {
        let (most, held): (i64, i64) = (row.get(1)?, row.get(2)?);
        let most = u32::try_from(most).map_err(|_| corrupt("the queue has an invalid limit"))?;
        Ok(QueueLimit { tag: row.get(0)?, most, held: held.cast_unsigned() })
    })
}

/// How many more sessions with a tag can be taken, for each tag with a limit.
pub(super) fn room_by_tag(connection: &Connection) -> Result<HashMap<String, i64>, Failure> {
    let room = limits(connection)?.into_iter();
    Ok(room.map(|limit| (limit.tag, i64::from(limit.most) - limit.held.cast_signed())).collect())
}

/// Sets or removes a limit.
pub(super) fn set_limit(connection: &Connection, tag: &str, most: Option<u32>) -> Result<(), Failure> {
    match most {
        Some(most) => {
            let sql = "INSERT OR REPLACE INTO limits (tag, most) VALUES (?1, ?2)";
            execute(connection, sql, params![tag, most])
        }
        None => execute(connection, "DELETE FROM limits WHERE tag = ?1", [tag]),
    }
}

/// All schedules.
pub(super) fn schedules(connection: &Connection) -> Result<Vec<Schedule>, Failure> {
    let sql = "SELECT name, cron, request, next, last FROM schedules ORDER BY name";
    rows(connection, sql, [], |row| {
        let (request, last): (String, Option<String>) = (row.get(2)?, row.get(4)?);
        let invalid = |_| corrupt("a schedule is not as it was written");
        Ok(Schedule {
            name: row.get(0)?,
            cron: row.get(1)?,
            request: serde_json::from_str(&request).map_err(invalid)?,
            next: time_of(row.get(3)?)?,
            last: last
                .map(|last| last.parse::<SessionId>())
                .transpose()
                .map_err(|_| corrupt("a schedule names an invalid session"))?,
        })
    })
}

/// Adds or replaces a schedule.
pub(super) fn put_schedule(connection: &Connection, schedule: &Schedule) -> Result<(), Failure> {
    let sql =
        "INSERT OR REPLACE INTO schedules (name, cron, request, next, last) VALUES (?1, ?2, ?3, ?4, ?5)";
    let last = schedule.last.map(|last| last.to_string());
    let (request, next) = (schedule.request.to_string(), schedule.next.unix_micros());
    execute(connection, sql, params![schedule.name, schedule.cron, request, next, last])
}

/// Removes a schedule. Returns whether there was one.
pub(super) fn remove_schedule(connection: &Connection, name: &str) -> Result<bool, Failure> {
    Ok(connection.prepare_cached("DELETE FROM schedules WHERE name = ?1")?.execute([name])? > 0)
}

/// Sets the next time of a schedule, if it still has this one.
pub(super) fn advance_schedule(
    connection: &Connection,
    name: &str,
    (due, next): (Timestamp, Timestamp),
    session: SessionId,
) -> Result<bool, Failure> {
    let sql = "UPDATE schedules SET next = ?3, last = ?4 WHERE name = ?1 AND next = ?2";
    let values = params![name, due.unix_micros(), next.unix_micros(), session.to_string()];
    Ok(connection.prepare_cached(sql)?.execute(values)? > 0)
}
