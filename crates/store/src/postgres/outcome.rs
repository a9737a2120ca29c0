//! Whether an append whose answer was lost was stored.
//!
//! The connection may break after the server has committed. The end of the journal tells: it is where it was, or where the batch ends with the checksum of the batch's last
//! record, which covers all records before it. Only then is a batch sent again, or acknowledged. A statement that is still on its way when it is sent again does no harm: both expect the same end, so one
//! of them is refused.

use backstitch_core::id::SessionId;
use backstitch_core::journal::Position;
use backstitch_core::ports::{FenceToken, Owner, StoreError};
use uuid::Uuid;

use super::claims::HeldClaim;
use super::error::{Failure, corrupt};
use super::retry::repeat;
use super::schema::get;
use super::server::parameters;
use super::store::SharedStore;
use crate::chain::Checksum;

/// An append whose outcome is asked for.
#[derive(Debug, Clone, Copy)]
pub(super) struct AppendOutcome {
    pub(super) session: SessionId,
    pub(super) fence: FenceToken,
    pub(super) held: HeldClaim,
    pub(super) expected: Position,
    pub(super) end: Position,
    pub(super) last: Checksum,
}

/// Whether a batch is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StoredBatch {
    Yes,
    No,
}

/// The end of a journal, and its claim.
pub(super) struct JournalEnd {
    pub(super) claim: Option<Uuid>,
    owner: Option<String>,
    pub(super) head: Position,
    pub(super) chain: Checksum,
}

impl JournalEnd {
    /// Reads the end of a journal.
    pub(super) async fn read(shared: &SharedStore, session: SessionId, number: i64) -> Result<Self, Failure> {
        let sql = "SELECT claim, owner, head, chain FROM {schema}.sessions WHERE id = $1";
        let rows = shared.server.read(sql, parameters![number => INT8]).await?;
        let row = rows.first().ok_or(StoreError::NotFound { session })?;
        let chain: &[u8] = get(row, 3)?;
        Ok(Self {
            claim: get(row, 0)?,
            owner: get(row, 1)?,
            head: Position::new(get::<i64>(row, 2)?.cast_unsigned()),
            chain: Checksum::stored(chain).ok_or_else(|| corrupt("a journal has an invalid checksum"))?,
        })
    }

    /// The error of a claim that is not the current one.
    pub(super) fn fenced(self, session: SessionId, fence: FenceToken) -> Failure {
        StoreError::Fenced { session, fence, owner: self.owner.map(Owner::new) }.into()
    }
}

/// Finds out whether a batch is stored. Fails with `OutcomeUnknown` if the server does not answer in time.
pub(super) async fn resolve(
    shared: &SharedStore,
    place: &AppendOutcome,
    failure: Failure,
) -> Result<StoredBatch, Failure> {
    let AppendOutcome { session, fence, held, expected, end, last } = *place;
    let time = shared.server.options.deadline;
    let found = match repeat(time, || JournalEnd::read(shared, session, held.number)).await {
        Ok(found) => found,
        // A row that is gone was lost in a failover.
        Err(Failure::Port(error)) if matches!(*error, StoreError::NotFound { .. }) => {
            return Err(
                StoreError::HistoryLost { session, acknowledged: held.head, head: Position::START }.into()
            );
        }
        Err(_) => return Err(unknown(session, failure)),
    };
    if found.head == end && found.chain == last {
        return Ok(StoredBatch::Yes);
    }
    if found.head < expected {
        return Err(StoreError::HistoryLost { session, acknowledged: expected, head: found.head }.into());
    }
    // Another holder may have continued after the batch.
    if found.head > end {
        match checksum_before(shared, held.number, end).await {
            Ok(checksum) if checksum == Some(last) => return Ok(StoredBatch::Yes),
            Ok(_) => {}
            Err(_) => return Err(unknown(session, failure)),
        }
    }
    if found.claim != Some(held.claim) {
        return Err(found.fenced(session, fence));
    }
    match found.head == expected {
        true => Ok(StoredBatch::No),
        false => Err(StoreError::Conflict { session, expected, actual: found.head }.into()),
    }
}

/// The error of a batch of which nobody says whether it is stored.
pub(super) fn unknown(session: SessionId, failure: Failure) -> Failure {
    StoreError::OutcomeUnknown { session, source: StoreError::from(failure).into() }.into()
}

/// Checksum of the record before a position.
async fn checksum_before(
    shared: &SharedStore,
    number: i64,
    end: Position,
) -> Result<Option<Checksum>, Failure> {
    let sql = "SELECT checksum FROM {schema}.records WHERE session = $1 AND position = $2";
    let position = end.number().cast_signed() - 1;
    let rows = shared.server.read(sql, parameters![number => INT8, position => INT8]).await?;
    Ok(rows.first().map(|row| get::<&[u8]>(row, 0)).transpose()?.and_then(Checksum::stored))
}
