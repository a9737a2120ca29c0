//! Claims to sessions.
//!
//! The random id of a claim decides who may write, and stays in this process; the fence is its number. After a failover that lost claims a fence may be given again, and the
//! holder of the first still has another id. Ends of journals that were acknowledged are known for longer than the claims, so that a failover between two claims is noticed too.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use backstitch_core::id::SessionId;
use backstitch_core::journal::Position;
use backstitch_core::ports::{ClaimMode, FenceToken, Owner, Process, SessionClaim, StoreError};
use backstitch_core::time::Timestamp;
use serde::Deserialize;
use tokio_postgres::Row;
use uuid::Uuid;

use super::error::{Failure, code, corrupt};
use super::lease::{self, ProcessPlace};
use super::retry::Attempts;
use super::schema::get;
use super::server::parameters;
use super::store::SharedStore;
use crate::chain::Checksum;
use crate::time::now;

/// A claim that this store holds, with the end of its journal as far as it is known.
#[derive(Debug, Clone, Copy)]
pub(super) struct HeldClaim {
    /// Number of the session in the tables.
    pub(super) number: i64,
    pub(super) claim: Uuid,
    /// The worker that made it. Its lease is that of the claim.
    pub(super) worker: Uuid,
    /// The counter of removed content at the time of the claim.
    pub(super) generation: i64,
    pub(super) head: Position,
    pub(super) chain: Checksum,
}

/// The claims that this store holds.
#[derive(Default)]
pub(super) struct HeldClaims(
    Mutex<HashMap<(SessionId, FenceToken), HeldClaim>>,
    /// Claims that are being made, by session. Those of takes have none, since the server chooses their sessions.
    Mutex<HashMap<Option<SessionId>, usize>>,
    /// Durable ends of journals that the server acknowledged to this process. They outlast claims.
    Mutex<HashMap<SessionId, KnownEnd>>,
);

/// The end of a journal, and whether it was reported that the server has lost it.
#[derive(Debug, Clone, Copy)]
struct KnownEnd {
    head: Position,
    is_reported: bool,
}

/// The most ends of journals that are known.
const MOST_ENDS: usize = 100_000;

/// A claim that is being made, or a take.
pub(super) struct PendingClaim<'a>(&'a HeldClaims, Option<SessionId>);

impl Drop for PendingClaim<'_> {
    fn drop(&mut self) {
        let mut claiming = self.0.1.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = claiming.get_mut(&self.1) {
            *count -= 1;
            if *count == 0 {
                claiming.remove(&self.1);
            }
        }
    }
}

impl HeldClaims {
    /// Notes that a claim is being made, or a take: until it is known, the server may have it and this store does not.
    pub(super) fn begin(&self, session: Option<SessionId>) -> PendingClaim<'_> {
        *self.1.lock().unwrap_or_else(PoisonError::into_inner).entry(session).or_default() += 1;
        PendingClaim(self, session)
    }

    /// Returns whether one claim to a session is being made, and no other, nor a take.
    fn is_alone(&self, session: SessionId) -> bool {
        let pending = self.1.lock().unwrap_or_else(PoisonError::into_inner);
        pending.get(&Some(session)) == Some(&1) && !pending.contains_key(&None)
    }

    pub(super) fn get(&self, session: SessionId, fence: FenceToken) -> Option<HeldClaim> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&(session, fence)).copied()
    }

    /// Keeps a new claim. If a failover lost an earlier one of this store, its holder may still use the same fence: then neither of them may write, and the session is
    /// recovered under the next fence.
    pub(super) fn keep(&self, session: SessionId, fence: FenceToken, held: HeldClaim) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_given_again = all.get(&(session, fence)).is_some_and(|known| known.claim != held.claim);
        let claim = if is_given_again { Uuid::nil() } else { held.claim };
        all.insert((session, fence), HeldClaim { claim, ..held });
    }

    pub(super) fn remove(&self, session: SessionId, fence: FenceToken) -> Option<HeldClaim> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&(session, fence))
    }

    /// The ids of all claims.
    pub(super) fn all(&self) -> Vec<Uuid> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).values().map(|held| held.claim).collect()
    }

    /// Notes the end of a journal, unless a later one is known.
    pub(super) fn advance(&self, session: SessionId, fence: FenceToken, head: Position, chain: Checksum) {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(held) = held.get_mut(&(session, fence)).filter(|held| held.head <= head) {
            (held.head, held.chain) = (head, chain);
        }
    }

    fn ends(&self) -> MutexGuard<'_, HashMap<SessionId, KnownEnd>> {
        self.2.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers the end of a journal after a batch that is durable.
    pub(super) fn remember(&self, session: SessionId, batch: Range<Position>) {
        let mut ends = self.ends();
        // A session that was removed may be created again.
        let before = ends.get(&session).map(|end| end.head).filter(|_| batch.start > Position::START);
        if ends.len() >= MOST_ENDS && before.is_none() {
            ends.clear();
        }
        let head = before.map_or(batch.end, |before| before.max(batch.end));
        ends.insert(session, KnownEnd { head, is_reported: false });
    }

    /// Returns the end of a journal that was acknowledged to this process, and that of the journal of a claim, if the second comes before the first.
    pub(super) fn lost_end(&self, session: SessionId, fence: FenceToken) -> Option<(Position, Position)> {
        let known = self.ends().get(&session).map(|end| end.head)?;
        // Read after the other: another append of the claim advances this one first.
        let head = self.get(session, fence)?.head;
        (head > Position::START && known > head).then_some((known, head))
    }

    /// Notes that a caller got the error that the end of a journal was lost.
    pub(super) fn note_reported(&self, session: SessionId) {
        if let Some(end) = self.ends().get_mut(&session) {
            end.is_reported = true;
        }
    }

    /// Forgets the end of a journal if its loss was reported. Called when the session was released for a person: who claims it next has decided to continue.
    pub(super) fn forget_reported(&self, session: SessionId) {
        let mut ends = self.ends();
        if ends.get(&session).is_some_and(|end| end.is_reported) {
            ends.remove(&session);
        }
    }

    /// Forgets the end of a journal that was removed.
    pub(super) fn forget_removed(&self, session: SessionId) {
        self.ends().remove(&session);
    }
}

/// The holder of a session, as an error of the server describes it.
#[derive(Deserialize)]
struct HolderDetail {
    worker: Uuid,
    owner: Option<String>,
    host: String,
    place: String,
    pid: i64,
    started: i64,
    since: Option<i64>,
}

impl HolderDetail {
    fn place(&self) -> ProcessPlace {
        let (host, place) = (self.host.clone(), self.place.clone());
        ProcessPlace { host, place, pid: u32::try_from(self.pid).unwrap_or_default(), started: self.started }
    }

    fn held(self, session: SessionId) -> StoreError {
        let since = self.since.and_then(|micros| Timestamp::from_unix_micros(micros).ok());
        let pid = u32::try_from(self.pid).ok();
        let process = since.zip(pid).map(|(since, pid)| Process { host: self.host, pid, since });
        StoreError::Held { session, owner: Owner::new(self.owner.unwrap_or_default()), process }
    }
}

/// Claims a session.
pub(super) async fn claim(
    shared: &SharedStore,
    session: SessionId,
    owner: Owner,
    mode: ClaimMode,
) -> Result<SessionClaim, Failure> {
    shared.check_writable()?;
    let mut attempts = Attempts::within(shared.server.options.deadline);
    let mut dead: Vec<Uuid> = Vec::new();
    let _claiming = shared.claims.begin(Some(session));
    loop {
        let worker = shared.lease.worker(&shared.server).await?;
        let failure = match claim_as(shared, session, &owner, mode, worker, &dead).await {
            Ok(claim) => return Ok(claim),
            Err(failure) => failure,
        };
        match failure.code() {
            Some(code::WORKER) => shared.lease.forget(worker),
            Some(code::HELD) => {
                let holder: HolderDetail = serde_json::from_str(failure.detail())
                    .map_err(|_| corrupt("a claim has an invalid holder"))?;
                if dead.contains(&holder.worker) {
                    return Err(holder.held(session).into());
                }
                // Its lease is not over, but its process is gone. Or it is this store, which does not know of it: the answer to an earlier claim or release was lost, and
                // nobody else would ever free the session.
                let lost = match holder.worker == worker {
                    true => lost_claim(shared, session, worker).await?,
                    false => holder.place().has_ended().then_some(holder.worker),
                };
                match lost {
                    // It is claimed at once, also at the end of the deadline. Nobody is named twice.
                    Some(lost) => {
                        dead.push(lost);
                        continue;
                    }
                    None => return Err(holder.held(session).into()),
                }
            }
            // A claim whose answer was lost is left behind as a number that nobody uses, and replaced.
            _ if failure.is_outage() || failure.is_rolled_back() => {
                dead.extend(lost_claim(shared, session, worker).await.ok().flatten());
            }
            _ => return Err(failure),
        }
        if !attempts.wait().await {
            return Err(failure);
        }
    }
}

/// This worker, if it holds a session without knowing the claim: only an answer that was lost explains it, unless another task is about to hear of its claim.
async fn lost_claim(shared: &SharedStore, session: SessionId, worker: Uuid) -> Result<Option<Uuid>, Failure> {
    let sql = "SELECT fence FROM {schema}.sessions WHERE session = $1 AND worker = $2 AND claim IS NOT NULL";
    let rows = shared.server.read(sql, parameters![*session.as_uuid() => UUID, worker => UUID]).await?;
    let Some(row) = rows.first() else { return Ok(None) };
    let fence: i64 = get(row, 0)?;
    // In this order: the claim of the row was begun before, so it is known if it is not being made any more.
    let is_alone = shared.claims.is_alone(session);
    let is_known = shared.claims.get(session, FenceToken(fence.cast_unsigned())).is_some();
    Ok((is_alone && !is_known).then_some(worker))
}

async fn claim_as(
    shared: &SharedStore,
    session: SessionId,
    owner: &Owner,
    mode: ClaimMode,
    worker: Uuid,
    dead: &[Uuid],
) -> Result<SessionClaim, Failure> {
    let sql = "SELECT r_id, r_fence, r_claim, r_head, r_chain, r_generation
        FROM {schema}.claim_1($1, $2, $3, $4, $5, $6, $7, $8)";
    let start = Checksum::start(session);
    let values = parameters![
        *session.as_uuid() => UUID, start.as_bytes() => BYTEA, worker => UUID, plain(&owner.to_string()) => TEXT,
        now().unix_micros() => INT8, (mode == ClaimMode::TakeOver) => BOOL, dead => UUID_ARRAY,
        shared.lease.seconds() => FLOAT8
    ];
    let rows = shared.server.query(sql, values).await?;
    let row = rows.first().ok_or_else(|| corrupt("a claim returned nothing"))?;
    let (fence, held) = held_in(row, worker)?;
    shared.claims.keep(session, fence, held);
    Ok(SessionClaim { session, fence, owner: owner.clone() })
}

/// Reads a new claim of a worker: number, fence, claim, head, chain and generation.
pub(super) fn held_in(row: &Row, worker: Uuid) -> Result<(FenceToken, HeldClaim), Failure> {
    let chain: &[u8] = get(row, 4)?;
    let held = HeldClaim {
        number: get(row, 0)?,
        claim: get(row, 2)?,
        worker,
        generation: get(row, 5)?,
        head: Position::new(get::<i64>(row, 3)?.cast_unsigned()),
        chain: Checksum::stored(chain).ok_or_else(|| corrupt("a journal has an invalid checksum"))?,
    };
    Ok((FenceToken(get::<i64>(row, 1)?.cast_unsigned()), held))
}

/// Text without zero characters, which PostgreSQL does not store.
pub(super) fn plain(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

/// Releases a session, if this claim still holds it.
pub(super) async fn release(shared: &SharedStore, claim: SessionClaim) -> Result<(), Failure> {
    shared.check_writable()?;
    let Some(held) = shared.claims.remove(claim.session, claim.fence) else { return Ok(()) };
    let sql = "UPDATE {schema}.sessions SET claim = NULL, worker = NULL, owner = NULL, since = NULL WHERE id = $1 AND claim = $2";
    shared.server.read(sql, parameters![held.number => INT8, held.claim => UUID]).await?;
    shared.claims.forget_reported(claim.session);
    Ok(())
}

/// The owner of a session, if a living worker holds it.
pub(super) async fn holder(shared: &SharedStore, session: SessionId) -> Result<Option<Owner>, Failure> {
    let sql = "SELECT owner, worker FROM {schema}.sessions WHERE session = $1 AND claim IS NOT NULL";
    let rows = shared.server.read(sql, parameters![*session.as_uuid() => UUID]).await?;
    let Some(row) = rows.first() else { return Ok(None) };
    let (owner, worker): (Option<String>, Option<Uuid>) = (get(row, 0)?, get(row, 1)?);
    let living = lease::living(&shared.server, &shared.lease).await?;
    Ok(worker.filter(|worker| living.contains(worker)).and(owner).map(Owner::new))
}

/// Returns whether a claim of this store is the current one of its session, and the lease of the store is not over: neither for the server nor for the clock of this machine.
pub(super) async fn is_current(
    shared: &SharedStore,
    session: SessionId,
    fence: FenceToken,
) -> Result<bool, Failure> {
    let Some(held) = shared.claims.get(session, fence) else { return Ok(false) };
    let left = shared.lease.time_left(held.worker);
    let sql = "SELECT 1 FROM {schema}.sessions s JOIN {schema}.workers w ON w.id = s.worker
        WHERE s.id = $1 AND s.claim = $2 AND w.lease_until > now()";
    // A server that does not answer cannot say that another program has claimed the session: without an answer, this one stops in time.
    let values = parameters![held.number => INT8, held.claim => UUID];
    match tokio::time::timeout(left, shared.server.read(sql, values)).await {
        Ok(rows) => Ok(!rows?.is_empty()),
        Err(_) => Ok(false),
    }
}

/// Returns whether this store may act under a claim, by the clock of this machine. The lease of a later worker of the store does not count.
pub(super) fn is_within_lease(shared: &SharedStore, session: SessionId, fence: FenceToken) -> bool {
    let held = shared.claims.get(session, fence);
    held.is_some_and(|held| !shared.lease.time_left(held.worker).is_zero())
}

/// The error of a claim that is not the current one.
pub(super) async fn explain_fence(shared: &SharedStore, session: SessionId, fence: FenceToken) -> Failure {
    let sql = "SELECT owner FROM {schema}.sessions WHERE session = $1 AND claim IS NOT NULL";
    let found = shared.server.read(sql, parameters![*session.as_uuid() => UUID]).await;
    let owner = found.ok().and_then(|rows| rows.first()?.try_get::<_, Option<String>>(0).ok()?);
    StoreError::Fenced { session, fence, owner: owner.map(Owner::new) }.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_is_alone_beside_no_other_and_no_take() {
        let claims = HeldClaims::default();
        let session = SessionId::from_uuid(Uuid::max());
        let _own = claims.begin(Some(session));
        assert!(claims.is_alone(session));
        for other in [Some(session), None] {
            let pending = claims.begin(other);
            assert!(!claims.is_alone(session), "{other:?}");
            drop(pending);
            assert!(claims.is_alone(session), "{other:?}");
        }
        let _elsewhere = claims.begin(Some(SessionId::from_uuid(Uuid::nil())));
        assert!(claims.is_alone(session));
    }
}
