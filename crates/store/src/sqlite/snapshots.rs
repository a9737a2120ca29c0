//! Latest snapshot of each session.

use backstitch_core::id::SessionId;
use backstitch_core::journal::Position;
use backstitch_core::ports::{FenceToken, SavedSnapshot, StoreError};
use rusqlite::{Connection, params};

use super::claims::check_fence;
use super::error::Failure;
use super::keys::{end_of, number_of};
use super::objects::{Packer, unpack};
use super::read::existing;
use super::sql::execute;
use super::store::SqliteStore;
use crate::chain::Checksum;

/// Maximum compressed size of a snapshot in bytes.
const MOST: u64 = 999_000_000;

/// A compressed snapshot with its checksum.
pub(super) struct PreparedSnapshot {
    session: SessionId,
    name: String,
    fence: FenceToken,
    position: Position,
    checksum: Checksum,
    length: u64,
    packed: Vec<u8>,
}

impl PreparedSnapshot {
    pub(super) fn new(
        packer: &Packer,
        session: SessionId,
        fence: FenceToken,
        position: Position,
        bytes: &[u8],
    ) -> Result<Self, Failure> {
        let packed = packer.pack(bytes)?;
        if packed.len() as u64 > MOST {
            let what = format!("the snapshot of session {session}");
            return Err(StoreError::TooLarge { what, bytes: packed.len() as u64, limit: MOST }.into());
        }
        let (checksum, length) = (Checksum::alone(bytes), bytes.len() as u64);
        Ok(Self { session, name: session.to_string(), fence, position, checksum, length, packed })
    }

    pub(super) fn write(&self, connection: &Connection) -> Result<(), Failure> {
        let session = self.session;
        check_fence(connection, session, &self.name, self.fence)?;
        let number = number_of(connection, &self.name)?.ok_or(StoreError::NotFound { session })?;
        let (head, _) = end_of(connection, session, number)?;
        if self.position > head {
            return Err(StoreError::BeyondHead { session, position: self.position, head }.into());
        }
        self.insert(connection, number)
    }

    pub(super) fn insert(&self, connection: &Connection, number: i64) -> Result<(), Failure> {
        let sql = "INSERT OR REPLACE INTO snapshots (session, position, checksum, length, content)
            VALUES (?1, ?2, ?3, ?4, ?5)";
        let position = self.position.number().cast_signed();
        let values =
            params![number, position, self.checksum.as_bytes(), self.length.cast_signed(), self.packed];
        execute(connection, sql, values)
    }
}

impl SqliteStore {
    /// Deletes the snapshot of a session, which then is opened from its records. Nothing is lost.
    pub fn remove_snapshot(&self, session: SessionId) -> Result<(), StoreError> {
        self.writer()?.transact(|connection| {
            let number = existing(connection, session)?;
            execute(connection, "DELETE FROM snapshots WHERE session = ?1", [number])
        })
    }
}

/// Reads and verifies the snapshot of a session, unless it is of a later cut than `until`.
pub(super) fn get(
    connection: &Connection,
    session: SessionId,
    until: Option<Position>,
) -> Result<Option<SavedSnapshot>, Failure> {
    let Some(number) = number_of(connection, &session.to_string())? else { return Ok(None) };
    // The position stands before the content, so that SQLite does not read a content that is not returned.
    let sql =
        "SELECT position, checksum, length, content FROM snapshots WHERE session = ?1 AND position <= ?2";
    let mut sql = connection.prepare_cached(sql)?;
    let until = until.map_or(i64::MAX, |until| i64::try_from(until.number()).unwrap_or(i64::MAX));
    let mut rows = sql.query([number, until])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let damaged = || StoreError::DamagedSnapshot { session };
    let number = |index| row.get::<_, i64>(index).ok().and_then(|number| u64::try_from(number).ok());
    let blob = |index| row.get_ref(index).ok().and_then(|value| value.as_blob().ok());
    let (position, length) = (number(0).ok_or_else(damaged)?, number(2).ok_or_else(damaged)?);
    let checksum = blob(1).and_then(Checksum::stored).ok_or_else(damaged)?;
    let bytes = blob(3).and_then(|packed| unpack(packed, length)).ok_or_else(damaged)?;
    if Checksum::alone(&bytes) == checksum {
        Ok(Some(SavedSnapshot { position: Position::new(position), bytes }))
    } else {
        Err(damaged().into())
    }
}
