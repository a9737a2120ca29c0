//! Taking sessions, giving them back, and recovering those of workers that have ended.

use std::collections::{BTreeSet, HashMap};

use backstitch_core::id::SessionId;
use backstitch_core::journal::{InboxId, QueueEntry};
use backstitch_core::ports::{ClaimMode, StoreError, TakeRequest, TakenSession};
use rusqlite::{Connection, params};

use super::entries::{ENTRY, corrupt, entry_in};
use super::list::{agents_text, room_by_tag};
use crate::queue_rows::{AttemptCount, ReleasedRow, state_word};
use crate::sqlite::claims::{self, ClaimGuard, Locks, check_fence};
use crate::sqlite::error::Failure;
use crate::sqlite::keys::number_of;
use crate::sqlite::read::session_in;
use crate::sqlite::sql::{execute, first, rows};
use crate::time::now;

/// Taken sessions with what holds their claims.
pub(super) type HeldSessions = Vec<(TakenSession, ClaimGuard)>;

/// A session that can be taken.
struct Candidate {
    number: i64,
    session: SessionId,
    entry: QueueEntry,
    attempts: i64,
}

/// Takes sessions. The caller has begun a write transaction.
pub(super) fn take(
    locks: &Locks,
    connection: &Connection,
    request: &TakeRequest,
) -> Result<HeldSessions, Failure> {
    let due = "UPDATE queue SET state = 'ready' WHERE state = 'waiting' AND due IS NOT NULL AND due <= ?1";
    execute(connection, due, [now().unix_micros()])?;
    let mut taken = Vec::new();
    for candidate in candidates(locks, connection, request)? {
        let Candidate { number, session, entry, attempts } = candidate;
        let (claim, held) = match claims::claim(locks, connection, session, &request.owner, ClaimMode::IfFree)
        {
            Ok(claimed) => claimed,
            // Its holder has ended, and its lock has not yet.
            Err(Failure(StoreError::Held { .. })) => continue,
            Err(failure) => return Err(failure),
        };
        let sql = "UPDATE queue SET state = 'held', fence = ?2, is_begun = 1 WHERE session = ?1";
        execute(connection, sql, params![number, claim.fence.0.cast_signed()])?;
        let attempts = u32::try_from(attempts).map_err(|_| corrupt("the queue has an invalid count"))?;
        let seen = last_item(connection, &session.to_string())?;
        taken.push((TakenSession { claim, entry, attempts, seen }, held));
    }
    Ok(taken)
}

/// Chooses the sessions to take, in their order.
fn candidates(
    locks: &Locks,
    connection: &Connection,
    request: &TakeRequest,
) -> Result<Vec<Candidate>, Failure> {
    let mut room = room_by_tag(connection)?;
    let sql = format!(
        "SELECT queue.session, sessions.session, iif(claims.owner IS NULL, NULL, claims.fence), queue.attempts, {ENTRY}
        FROM queue JOIN sessions ON sessions.id = queue.session
        LEFT JOIN claims ON claims.session = sessions.session
        WHERE queue.state = 'ready' AND queue.agent IN (SELECT value FROM json_each(?1))
        ORDER BY queue.priority DESC, queue.due, queue.session"
    );
    let mut sql = connection.prepare_cached(&sql)?;
    let mut rows = sql.query([agents_text(&request.agents)?])?;
    let mut chosen = Vec::new();
    while chosen.len() < request.limit
        && let Some(row) = rows.next()?
    {
        let session = session_in(row.get_ref(1)?)?;
        if let Some(fence) = row.get(2)?
            && locks.lives(session, fence)?
        {
            continue;
        }
        let entry = entry_in(row, 4)?;
        if has_room(&mut room, &entry.tags) {
            chosen.push(Candidate { number: row.get(0)?, session, entry, attempts: row.get(3)? });
        }
    }
    Ok(chosen)
}

/// Takes room for a session with these tags, if there is some for each.
fn has_room(room: &mut HashMap<String, i64>, tags: &BTreeSet<String>) -> bool {
    if tags.iter().any(|tag| room.get(tag).is_some_and(|room| *room <= 0)) {
        return false;
    }
    for tag in tags {
        if let Some(room) = room.get_mut(tag) {
            *room -= 1;
        }
    }
    true
}

fn last_item(connection: &Connection, name: &str) -> Result<Option<InboxId>, Failure> {
    let sql = "SELECT max(id) FROM inbox WHERE session = ?1";
    let last: Option<Option<i64>> = first(connection, sql, [name], |row| row.get(0))?;
    Ok(last.flatten().map(|id| InboxId(id.cast_unsigned())))
}

/// Gives a session back. The caller has begun a write transaction.
pub(super) fn release(
    connection: &Connection,
    taken: &TakenSession,
    released: &ReleasedRow,
) -> Result<(), Failure> {
    let session = taken.claim.session;
    let name = session.to_string();
    check_fence(connection, session, &name, taken.claim.fence)?;
    claims::release(connection, session, taken.claim.fence)?;
    let Some(number) = number_of(connection, &name)? else { return Ok(()) };
    let got_item = last_item(connection, &name)? > taken.seen;
    if released.is_done && !got_item {
        return execute(connection, "DELETE FROM queue WHERE session = ?1", [number]);
    }
    let now = now();
    let until = released.after.map(|after| now.saturating_add(after)).or(released.until);
    let (state, due) = match (state_word(released.state), until) {
        ("failed", _) => ("failed", None),
        ("ready", _) => ("ready", Some(now)),
        _ if got_item || until.is_some_and(|until| until <= now) => ("ready", Some(now)),
        (state, until) => (state, until),
    };
    let factor = i64::from(released.attempts != AttemptCount::Reset);
    let added = i64::from(released.attempts == AttemptCount::Add);
    let sql = "UPDATE queue SET state = ?2, due = ?3, attempts = attempts * ?4 + ?5, fence = NULL,
        reason = iif(?4, coalesce(?6, reason), NULL) WHERE session = ?1";
    let due = due.map(|due| due.unix_micros());
    execute(connection, sql, params![number, state, due, factor, added, released.reason])
}

/// Sessions that the queue counts as held, and that no living process holds, with whether their claims were left behind.
pub(super) fn abandoned(locks: &Locks, connection: &Connection) -> Result<Vec<(i64, bool)>, Failure> {
    let sql =
        "SELECT queue.session, sessions.session, iif(claims.owner IS NULL, NULL, claims.fence) FROM queue
        JOIN sessions ON sessions.id = queue.session LEFT JOIN claims ON claims.session = sessions.session
        WHERE queue.state = 'held'";
    let held: Vec<(i64, SessionId, Option<i64>)> =
        rows(connection, sql, [], |row| Ok((row.get(0)?, session_in(row.get_ref(1)?)?, row.get(2)?)))?;
    let mut abandoned = Vec::new();
    for (number, session, fence) in held {
        match fence {
            Some(fence) if locks.lives(session, fence)? => {}
            fence => abandoned.push((number, fence.is_some())),
        }
    }
    Ok(abandoned)
}

/// Makes sessions ready that no living process holds. The caller has begun a write transaction.
pub(super) fn recover(locks: &Locks, connection: &Connection) -> Result<u64, Failure> {
    let abandoned = abandoned(locks, connection)?;
    for (number, is_left_behind) in &abandoned {
        let sql = "UPDATE queue SET state = 'ready', due = ?2, fence = NULL, attempts = attempts + ?3,
            reason = iif(?3, 'its worker ended', reason) WHERE session = ?1 AND state = 'held'";
        execute(connection, sql, params![number, now().unix_micros(), is_left_behind])?;
    }
    Ok(abandoned.len() as u64)
}
