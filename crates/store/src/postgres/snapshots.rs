//! Latest snapshot of each session.

use backstitch_core::id::SessionId;
use backstitch_core::journal::Position;
use backstitch_core::ports::{FenceToken, SavedSnapshot, StoreError};

use super::claims::explain_fence;
use super::error::Failure;
use super::outcome::JournalEnd;
use super::schema::get;
use super::server::parameters;
use super::store::SharedStore;
use crate::chain::Checksum;
use crate::packed::unpack;

/// Maximum compressed size of a snapshot in bytes.
const MOST: u64 = 256 << 20;

/// Saves a snapshot in place of an earlier one.
pub(super) async fn save(
    shared: &SharedStore,
    session: SessionId,
    fence: FenceToken,
    position: Position,
    bytes: &[u8],
) -> Result<(), Failure> {
    shared.check_writable()?;
    let packed = shared.packer.pack(bytes)?;
    if packed.len() as u64 > MOST {
        let what = format!("the snapshot of session {session}");
        return Err(StoreError::TooLarge { what, bytes: packed.len() as u64, limit: MOST }.into());
    }
    let Some(held) = shared.claims.get(session, fence) else {
        return Err(explain_fence(shared, session, fence).await);
    };
    let (checksum, length) = (Checksum::alone(bytes), (bytes.len() as u64).cast_signed());
    let sql = "INSERT INTO {schema}.snapshots (session, position, checksum, length, content)
        SELECT s.id, $3, $4, $5, $6 FROM {schema}.sessions s
        WHERE s.id = $1 AND s.claim = $2 AND s.created IS NOT NULL AND s.head >= $3 FOR UPDATE
        ON CONFLICT (session) DO UPDATE SET position = excluded.position, checksum = excluded.checksum,
            length = excluded.length, content = excluded.content RETURNING 1";
    let values = parameters![
        held.number => INT8, held.claim => UUID, i64::try_from(position.number()).unwrap_or(i64::MAX) => INT8,
        checksum.as_bytes() => BYTEA, length => INT8, packed => BYTEA
    ];
    if !shared.server.read(sql, values).await?.is_empty() {
        return Ok(());
    }
    let end = JournalEnd::read(shared, session, held.number).await?;
    if end.claim != Some(held.claim) {
        return Err(end.fenced(session, fence));
    }
    match end.head {
        Position::START => Err(StoreError::NotFound { session }.into()),
        head => Err(StoreError::BeyondHead { session, position, head }.into()),
    }
}

/// Reads and verifies the snapshot of a session, unless it is of a later cut than `until`.
pub(super) async fn read(
    shared: &SharedStore,
    session: SessionId,
    until: Option<Position>,
) -> Result<Option<SavedSnapshot>, Failure> {
    let sql = "SELECT p.position, p.checksum, p.length, p.content FROM {schema}.snapshots p
        JOIN {schema}.sessions s ON s.id = p.session WHERE s.session = $1 AND p.position <= $2";
    let until = until.map_or(i64::MAX, |until| i64::try_from(until.number()).unwrap_or(i64::MAX));
    let rows = shared.server.read(sql, parameters![*session.as_uuid() => UUID, until => INT8]).await?;
    let Some(row) = rows.first() else { return Ok(None) };
    let damaged = || StoreError::DamagedSnapshot { session };
    let number = |index| get::<i64>(row, index).ok().and_then(|number| u64::try_from(number).ok());
    let (position, length) = (number(0).ok_or_else(damaged)?, number(2).ok_or_else(damaged)?);
    let checksum = Checksum::stored(get(row, 1)?).ok_or_else(damaged)?;
    let bytes = unpack(get(row, 3)?, length).ok_or_else(damaged)?;
    match Checksum::alone(&bytes) == checksum {
        true => Ok(Some(SavedSnapshot { position: Position::new(position), bytes })),
        false => Err(damaged().into()),
    }
}
