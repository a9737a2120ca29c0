//! Taking sessions, giving them back, and recovering those of workers that have ended.

use backstitch_core::id::SessionId;
use backstitch_core::journal::InboxId;
use backstitch_core::ports::{QueueState, SessionClaim, StoreError, TakeRequest, TakenSession};
use tokio_postgres::Row;
use uuid::Uuid;

use super::entries::entry_in;
use crate::postgres::claims::{HeldClaim, explain_fence, held_in, plain};
use crate::postgres::error::{Failure, code, corrupt};
use crate::postgres::lease;
use crate::postgres::retry::Attempts;
use crate::postgres::schema::get;
use crate::postgres::server::parameters;
use crate::postgres::store::SharedStore;
use crate::queue_rows::{AttemptCount, ReleasedRow, state_word};
use crate::time::now;

/// Takes sessions. If the answer is lost, the sessions that the server has given stay held until [`recover`] finds that this store does not know their claims.
pub(super) async fn take(shared: &SharedStore, request: TakeRequest) -> Result<Vec<TakenSession>, Failure> {
    shared.check_writable()?;
    let sql = "SELECT r_id, r_fence, r_claim, r_head, r_chain, r_generation, r_session, r_attempts, r_seen, r_agent, r_priority, r_due, r_tags, r_key
        FROM {schema}.take_2($1, $2, $3, $4, $5)";
    let limit = i64::try_from(request.limit).unwrap_or(i64::MAX);
    let mut attempts = Attempts::within(shared.server.options.deadline);
    // Until the answer is here, no other task may take what it holds for lost.
    let _taking = shared.claims.begin(None);
    loop {
        let worker = shared.lease.worker(&shared.server).await?;
        let values = parameters![
            worker => UUID, plain(&request.owner.to_string()) => TEXT, now().unix_micros() => INT8,
            request.agents => TEXT_ARRAY, limit => INT8
        ];
        let failure = match shared.server.query(sql, values).await {
            Ok(rows) => return rows.iter().map(|row| keep(shared, row, worker, &request)).collect(),
            Err(failure) => failure,
        };
        match failure.code() {
            Some(code::WORKER) => shared.lease.forget(worker),
            _ if failure.is_rolled_back() => {}
            _ => return Err(failure),
        }
        if !attempts.wait().await {
            return Err(failure);
        }
    }
}

fn keep(
    shared: &SharedStore,
    row: &Row,
    worker: Uuid,
    request: &TakeRequest,
) -> Result<TakenSession, Failure> {
    let (fence, held) = held_in(row, worker)?;
    let session = SessionId::from_uuid(get::<Uuid>(row, 6)?);
    let attempts: i32 = get(row, 7)?;
    let seen: Option<i64> = get(row, 8)?;
    shared.claims.keep(session, fence, held);
    Ok(TakenSession {
        claim: SessionClaim { session, fence, owner: request.owner.clone() },
        entry: entry_in(row, 9)?,
        attempts: u32::try_from(attempts).map_err(|_| corrupt("the queue has an invalid count"))?,
        seen: seen.map(|seen| InboxId(seen.cast_unsigned())),
    })
}

/// Gives a session back.
pub(super) async fn release(
    shared: &SharedStore,
    taken: TakenSession,
    released: ReleasedRow,
) -> Result<(), Failure> {
    shared.check_writable()?;
    let SessionClaim { session, fence, .. } = taken.claim;
    let Some(held) = shared.claims.get(session, fence) else {
        return Err(explain_fence(shared, session, fence).await);
    };
    let mut attempts = Attempts::within(shared.server.options.deadline);
    let mut was_lost = false;
    loop {
        match send_release(shared, &held, &taken, &released).await {
            // A claim that is gone after an answer was lost was released by the statement without an answer, or is no longer this store's to release.
            Ok(is_released) if is_released || was_lost => {
                shared.claims.remove(session, fence);
                if released.state == QueueState::Failed {
                    shared.claims.forget_reported(session);
                }
                return Ok(());
            }
            Ok(_) => {
                shared.claims.remove(session, fence);
                return Err(explain_fence(shared, session, fence).await);
            }
            Err(failure) if failure.is_outage() || failure.is_rolled_back() => {
                was_lost |= failure.is_outage();
                if !attempts.wait().await {
                    return Err(failure);
                }
            }
            Err(failure) => return Err(failure),
        }
    }
}

async fn send_release(
    shared: &SharedStore,
    held: &HeldClaim,
    taken: &TakenSession,
    released: &ReleasedRow,
) -> Result<bool, Failure> {
    let sql = "SELECT {schema}.release_1($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";
    let factor = i32::from(released.attempts != AttemptCount::Reset);
    let added = i32::from(released.attempts == AttemptCount::Add);
    let seen = taken.seen.map_or(0, |seen| seen.0.cast_signed());
    let values = parameters![
        held.number => INT8, held.claim => UUID, released.is_done => BOOL, state_word(released.state) => TEXT,
        released.until.map(|until| until.unix_micros()) => INT8, released.after.map(|after| after.as_secs_f64()) => FLOAT8,
        factor => INT4, added => INT4, released.reason => TEXT, seen => INT8
    ];
    let rows = shared.server.query(sql, values).await?;
    let row = rows.first().ok_or_else(|| StoreError::Backend("a release returned nothing".into()))?;
    get(row, 0)
}

/// Makes sessions ready that nobody drives any more.
pub(super) async fn recover(shared: &SharedStore) -> Result<u64, Failure> {
    shared.check_writable()?;
    let dead = lease::list_ended(&shared.server).await?;
    let known = shared.claims.all();
    // A statement that this store still waits for is not older than its deadline.
    let grace = shared.server.options.deadline.as_secs_f64() * 2.0;
    let sql = "SELECT {schema}.recover_1($1, $2, $3, $4, $5)";
    let worker = shared.lease.current();
    let values = parameters![
        shared.lease.seconds() => FLOAT8, dead => UUID_ARRAY, worker => UUID, known => UUID_ARRAY, grace => FLOAT8
    ];
    let rows = shared.server.read(sql, values).await?;
    let row = rows.first().ok_or_else(|| StoreError::Backend("a recovery returned nothing".into()))?;
    Ok(get::<i64>(row, 0)?.cast_unsigned())
}
