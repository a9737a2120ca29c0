//! Reads records and verifies each against the checksum chain.

use backstitch_core::id::SessionId;
use backstitch_core::journal::{Position, Record};
use backstitch_core::ports::{Damage, StoreError};
use tokio_postgres::Row;
use uuid::Uuid;

use super::error::Failure;
use super::link::Link;
use super::schema::get;
use super::server::parameters;
use super::store::SharedStore;
use crate::NOTE_KIND;
use crate::chain::Checksum;

/// Number of records that a statement reads.
const PAGE: usize = 1_000;

/// Records of a page, with the number of their session even if there are none.
const SELECT: &str =
    "SELECT s.id, r.position, r.record, r.checksum, r.replaced FROM {schema}.sessions s LEFT JOIN LATERAL (
        SELECT position, record, checksum, replaced FROM {schema}.records
        WHERE session = s.id AND position >= $2 ORDER BY position LIMIT $3) r ON true
    WHERE s.session = $1 AND s.created IS NOT NULL ORDER BY r.position";

/// Verifies records one after the other.
pub(super) struct ChainReader {
    session: SessionId,
    /// Position of the next row.
    next: Position,
    /// Checksum of the row before it; none if that row is only read for its checksum.
    checksum: Option<Checksum>,
    left: usize,
}

impl ChainReader {
    /// Reads at most `limit` records from a position on. The record before it is read too, because its checksum is needed.
    pub(super) fn new(session: SessionId, from: Position, limit: usize) -> Self {
        match from.number().checked_sub(1) {
            None => Self { session, next: from, checksum: Some(Checksum::start(session)), left: limit },
            Some(before) => Self { session, next: Position::new(before), checksum: None, left: limit },
        }
    }

    /// First position and number of the rows to read next; none if there are enough.
    fn page(&self) -> Option<(i64, i64)> {
        let size = self.left.saturating_add(usize::from(self.checksum.is_none())).min(PAGE);
        (self.left > 0).then(|| {
            (i64::try_from(self.next.number()).unwrap_or(i64::MAX), i64::try_from(size).unwrap_or(i64::MAX))
        })
    }

    /// Verifies the row after the last one, and returns its position and text, unless it was only read for its checksum.
    fn verify<'a>(&mut self, row: &'a Row) -> Result<Option<(Position, &'a str)>, Failure> {
        let session = self.session;
        let damaged = |position, damage| Failure::from(StoreError::Damaged { session, position, damage });
        let position = Position::new(get::<i64>(row, 1)?.cast_unsigned());
        if position != self.next {
            return Err(damaged(self.next, Damage::Gap));
        }
        let stored = Checksum::stored(get(row, 3)?).ok_or_else(|| damaged(position, Damage::Checksum))?;
        let before = self.checksum.replace(stored);
        self.next = position.next();
        let Some(before) = before else { return Ok(None) };
        let text: &str = get(row, 2)?;
        if before.next(text.as_bytes()) != stored {
            let replaced: Option<&[u8]> = get(row, 4)?;
            if replaced.and_then(Checksum::stored) != Some(Checksum::alone(text.as_bytes())) {
                return Err(damaged(position, Damage::Checksum));
            }
        }
        self.left = self.left.saturating_sub(1);
        Ok(Some((position, text)))
    }
}

/// Returns whether a page has records: a session without any has one row without a record.
fn has_records(rows: &[Row]) -> Result<bool, Failure> {
    Ok(rows.first().map(|row| get::<Option<i64>>(row, 1)).transpose()?.flatten().is_some())
}

/// Decodes the text of a record.
pub(super) fn decode(session: SessionId, position: Position, text: &str) -> Result<Record, StoreError> {
    Record::decode(position, text).map_err(|source| StoreError::BrokenRecord { session, source })
}

/// Reads at most `limit` records, starting at `from`.
pub(super) async fn read(
    shared: &SharedStore,
    session: SessionId,
    from: Position,
    limit: usize,
) -> Result<Vec<Record>, Failure> {
    let mut reader = ChainReader::new(session, from, limit);
    let mut records = Vec::new();
    // A session that does not exist is an error even if nothing is wanted of it.
    let (mut start, mut size) = reader.page().unwrap_or_default();
    loop {
        let values = parameters![*session.as_uuid() => UUID, start => INT8, size => INT8];
        let rows = shared.server.read(SELECT, values).await?;
        if rows.is_empty() {
            return Err(StoreError::NotFound { session }.into());
        }
        if !has_records(&rows)? {
            return Ok(records);
        }
        for row in &rows {
            if let Some((position, text)) = reader.verify(row)? {
                records.push(decode(session, position, text)?);
            }
        }
        match reader.page() {
            Some(next) if i64::try_from(rows.len()) == Ok(size) => (start, size) = next,
            _ => return Ok(records),
        }
    }
}

/// Reads all notes, each verified against the checksum before it.
pub(super) async fn notes(shared: &SharedStore, session: SessionId) -> Result<Vec<Record>, Failure> {
    const NOTES: &str = "SELECT s.id, r.position, r.record, r.checksum, r.replaced, before.checksum
        FROM {schema}.sessions s JOIN {schema}.records r ON r.session = s.id AND r.kind = $2
        LEFT JOIN {schema}.records before ON before.session = s.id AND before.position = r.position - 1
        WHERE s.session = $1 AND s.created IS NOT NULL ORDER BY r.position";
    let rows = shared.server.read(NOTES, parameters![*session.as_uuid() => UUID, NOTE_KIND => TEXT]).await?;
    if rows.is_empty() {
        head(shared, session).await?;
    }
    let mut notes = Vec::with_capacity(rows.len());
    for row in &rows {
        let position = Position::new(get::<i64>(row, 1)?.cast_unsigned());
        let before: Option<&[u8]> = get(row, 5)?;
        let damage = Damage::Gap;
        let is_first = position == Position::START;
        let checksum =
            if is_first { Some(Checksum::start(session)) } else { before.and_then(Checksum::stored) };
        let checksum = checksum.ok_or(StoreError::Damaged { session, position, damage })?;
        let mut reader = ChainReader { session, next: position, checksum: Some(checksum), left: 1 };
        if let Some((position, text)) = reader.verify(row)? {
            notes.push(decode(session, position, text)?);
        }
    }
    Ok(notes)
}

/// Passes the texts of at most `limit` records, starting at `from`, each verified.
pub(super) fn texts(
    link: &Link<'_>,
    session: SessionId,
    from: Position,
    limit: usize,
    mut each: impl FnMut(Position, &str) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut reader = ChainReader::new(session, from, limit);
    while let Some((start, size)) = reader.page() {
        let rows =
            link.query(SELECT, parameters![*session.as_uuid() => UUID, start => INT8, size => INT8])?;
        if rows.is_empty() {
            return Err(StoreError::NotFound { session }.into());
        }
        if !has_records(&rows)? {
            return Ok(());
        }
        for row in &rows {
            if let Some((position, text)) = reader.verify(row)? {
                each(position, text)?;
            }
        }
        if i64::try_from(rows.len()).is_ok_and(|found| found < size) {
            return Ok(());
        }
    }
    Ok(())
}

/// Position after the last record.
pub(super) async fn head(shared: &SharedStore, session: SessionId) -> Result<Position, Failure> {
    let sql = "SELECT head FROM {schema}.sessions WHERE session = $1 AND created IS NOT NULL";
    let rows = shared.server.read(sql, parameters![*session.as_uuid() => UUID]).await?;
    let row = rows.first().ok_or(StoreError::NotFound { session })?;
    Ok(Position::new(get::<i64>(row, 0)?.cast_unsigned()))
}

/// Lists all sessions in the order of creation.
pub(super) async fn sessions(shared: &SharedStore) -> Result<Vec<SessionId>, Failure> {
    let (mut found, mut after) = (Vec::new(), 0_i64);
    loop {
        let sql =
            "SELECT session, created FROM {schema}.sessions WHERE created > $1 ORDER BY created LIMIT 10000";
        let rows = shared.server.read(sql, parameters![after => INT8]).await?;
        for row in &rows {
            found.push(SessionId::from_uuid(get::<Uuid>(row, 0)?));
            after = get(row, 1)?;
        }
        if rows.len() < 10_000 {
            return Ok(found);
        }
    }
}

/// Lists all sessions with their numbers, in the order of creation.
pub(super) fn numbered_sessions(link: &Link<'_>) -> Result<Vec<(i64, SessionId)>, Failure> {
    let sql = "SELECT id, session FROM {schema}.sessions WHERE created IS NOT NULL ORDER BY created";
    let rows = link.query(sql, &[])?;
    rows.iter().map(|row| Ok((get(row, 0)?, SessionId::from_uuid(get::<Uuid>(row, 1)?)))).collect()
}

/// Number and head of a session; fails with `NotFound` if there is none.
pub(super) fn existing(link: &Link<'_>, session: SessionId) -> Result<(i64, Position), Failure> {
    let sql = "SELECT id, head FROM {schema}.sessions WHERE session = $1 AND created IS NOT NULL";
    let rows = link.query(sql, parameters![*session.as_uuid() => UUID])?;
    let row = rows.first().ok_or(StoreError::NotFound { session })?;
    Ok((get(row, 0)?, Position::new(get::<i64>(row, 1)?.cast_unsigned())))
}
