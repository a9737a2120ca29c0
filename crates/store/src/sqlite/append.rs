//! Appending: all checks first, then all writes, in one transaction.
//!
//! What can be done before the transaction is: records are encoded and objects packed by whoever appends. Inside of it stand
//! fence, position, objects and inbox, in this order; then objects are written, and records after them.
//!
//! A batch with more objects than a transaction should hold, such as the first capture of a large directory, has content of
//! files written ahead, in transactions of its own. Until the records that need it follow, nothing names it, and a collection
//! may take it away again; so the last transaction writes what is missing. Only plain content is written ahead and never what
//! names other objects: whatever is stored is whole.

use std::collections::HashSet;
use std::ops::Range;

use backstitch_core::id::SessionId;
use backstitch_core::journal::{Batch, InboxId, Position, RecordBody};
use backstitch_core::object::{Object, ObjectId, ObjectKind};
use backstitch_core::ports::{Fence, Owner, StoreError, check_batch};
use backstitch_filesystem::format::decode_tree;
use rusqlite::{Connection, OptionalExtension as _, params};

use super::chain::Checksum;
use super::error::Failure;
use super::objects::{CompressedObject, Packer, Presence, presence};
use super::reach;
use super::{gc, inbox};

/// How many records a session may have: their places share a key with the session's number.
pub(super) const MOST_RECORDS: u64 = 1 << 32;

/// The most bytes of a record. It is far below what SQLite holds, and above what the codec lets through.
const MOST_BYTES: u64 = 512 << 20;

/// The key of the first record of a session.
pub(super) fn first_key(session: i64) -> i64 {
    session << 32
}

/// The key of the last record that a session could have.
pub(super) fn last_key(session: i64) -> i64 {
    first_key(session) | (MOST_RECORDS.cast_signed() - 1)
}

/// The key of a record.
pub(super) fn key_of(session: i64, position: Position) -> Option<i64> {
    let position = u32::try_from(position.number()).ok()?;
    Some(first_key(session) | i64::from(position))
}

/// The place of the record with a key.
pub(super) fn position_of(key: i64) -> Position {
    Position::new((key & (MOST_RECORDS.cast_signed() - 1)).cast_unsigned())
}

/// A batch, ready to be written.
pub(super) struct PreparedBatch {
    session: SessionId,
    /// The session's id as it is stored.
    name: String,
    expected: Position,
    fence: Fence,
    texts: Vec<String>,
    objects: Vec<CompressedObject>,
    /// The objects that are written ahead, as many together as a transaction holds. They stand before the others.
    ahead: Vec<Range<usize>>,
    /// Objects that records refer to and that the batch does not bring along.
    needed: Vec<ObjectId>,
    /// Manifests of workspaces that records name.
    manifests: HashSet<ObjectId>,
    taken: Vec<InboxId>,
    /// How often garbage had been collected when the session was claimed.
    generation: Option<i64>,
}

impl PreparedBatch {
    /// Prepares a batch. `generation` says how often garbage had been collected when the session was claimed.
    pub(super) fn new(
        packer: &Packer,
        session: SessionId,
        expected: Position,
        fence: Fence,
        batch: Batch,
        generation: Option<i64>,
    ) -> Result<Self, Failure> {
        check_batch(session, expected, &batch)?;
        let brought: HashSet<ObjectId> = batch.objects().iter().map(Object::id).collect();
        let mut needed: Vec<ObjectId> = batch.bodies().iter().flat_map(RecordBody::object_refs).collect();
        needed.retain(|id| !brought.contains(id));
        let manifests = match brought.is_empty() {
            true => HashSet::new(),
            false => batch.bodies().iter().flat_map(reach::manifests_of).collect(),
        };
        let taken = batch.taken().to_vec();
        let (records, objects) = batch.into_records(expected);
        let mut texts = Vec::with_capacity(records.len());
        for record in &records {
            let position = record.position;
            let text =
                record.encode().map_err(|source| StoreError::Unstorable { session, position, source })?;
            if text.len() as u64 > MOST_BYTES {
                let (what, bytes) = (format!("record {position} of session {session}"), text.len() as u64);
                return Err(StoreError::TooLarge { what, bytes, limit: MOST_BYTES }.into());
            }
            texts.push(text);
        }
        let mut unique = HashSet::new();
        let objects = objects.into_iter().filter(|object| unique.insert(object.id()));
        let objects: Vec<CompressedObject> =
            objects.map(|object| CompressedObject::new(packer, object)).collect::<Result<_, _>>()?;
        let name = session.to_string();
        Ok(Self {
            session,
            name,
            expected,
            fence,
            texts,
            objects,
            ahead: Vec::new(),
            needed,
            manifests,
            taken,
            generation,
        })
    }

    /// Has objects written ahead where the batch is larger than one transaction may be.
    pub(super) fn divided(mut self, limit: u64) -> Self {
        self.ahead = divide(&mut self.objects, &self.manifests, limit);
        self
    }

    /// The parts that have to be written before the batch itself is.
    pub(super) fn parts_ahead(&self) -> &[Range<usize>] {
        &self.ahead
    }

    /// How many bytes a part has.
    pub(super) fn bytes_of(&self, part: &Range<usize>) -> u64 {
        self.objects[part.clone()].iter().map(CompressedObject::stored_bytes).sum()
    }

    /// How many bytes are left for the batch itself.
    pub(super) fn bytes(&self) -> u64 {
        let texts: u64 = self.texts.iter().map(|text| text.len() as u64).sum();
        texts + self.bytes_of(&(self.written_ahead()..self.objects.len()))
    }

    fn written_ahead(&self) -> usize {
        self.ahead.last().map_or(0, |part| part.end)
    }

    /// Writes a part ahead, unless the batch would be refused anyway.
    pub(super) fn write_ahead(&self, connection: &Connection, part: &Range<usize>) -> Result<(), Failure> {
        check_fence(connection, self.session, &self.name, self.fence)?;
        self.objects[part.clone()].iter().try_for_each(|object| object.insert(connection))
    }

    /// Writes the batch, or refuses it. Nothing is written before all checks are done.
    pub(super) fn write(&self, connection: &Connection) -> Result<Position, Failure> {
        let session = self.session;
        check_fence(connection, session, &self.name, self.fence)?;
        let number = number_of(connection, &self.name)?;
        let (actual, mut checksum) = match number {
            Some(number) => end_of(connection, session, number)?,
            None => (Position::START, Checksum::start(session)),
        };
        if actual != self.expected {
            return Err(StoreError::Conflict { session, expected: self.expected, actual }.into());
        }
        let after = actual.after(self.texts.len());
        if after.number() > MOST_RECORDS {
            let what = format!("the journal of session {session}, in records,");
            return Err(StoreError::TooLarge { what, bytes: after.number(), limit: MOST_RECORDS }.into());
        }
        for id in &self.needed {
            presence(connection, *id)?.required(*id)?;
        }
        self.check_below(connection)?;
        for (index, item) in self.taken.iter().enumerate() {
            if self.taken[..index].contains(item) || !inbox::waits(connection, &self.name, *item)? {
                return Err(StoreError::NotInInbox { session, item: *item }.into());
            }
        }

        for (index, object) in self.objects.iter().enumerate() {
            let is_there =
                index < self.written_ahead() && presence(connection, object.object.id())? == Presence::Stored;
            if !is_there {
                object.insert(connection)?;
            }
        }
        for item in &self.taken {
            inbox::remove(connection, *item)?;
        }
        let number = match number {
            Some(number) => number,
            None => create(connection, &self.name)?,
        };
        let mut insert =
            connection.prepare_cached("INSERT INTO records (id, checksum, record) VALUES (?1, ?2, ?3)")?;
        let start = first_key(number) + actual.number().cast_signed();
        for (key, text) in (start..).zip(&self.texts) {
            checksum = checksum.next(text.as_bytes());
            insert.execute(params![key, checksum.as_bytes(), text])?;
        }
        Ok(after)
    }

    /// Refuses trees and manifests below which something is missing.
    ///
    /// Whoever captures files brings along what was not stored then. If garbage was collected since the session was claimed,
    /// that may be out of date, and what was there may be gone. All that is stored is whole, so it is enough to look at what
    /// the new objects name themselves.
    fn check_below(&self, connection: &Connection) -> Result<(), Failure> {
        if self.objects.is_empty() || self.generation == Some(gc::generation(connection)?) {
            return Ok(());
        }
        let brought: HashSet<ObjectId> = self.objects.iter().map(|packed| packed.object.id()).collect();
        let objects = self.objects.iter().map(|packed| &packed.object);
        for object in objects {
            let named: Vec<ObjectId> = match object.kind() {
                ObjectKind::Tree => {
                    let entries = decode_tree(object.bytes()).unwrap_or_default();
                    entries.into_iter().map(|entry| entry.object).collect()
                }
                _ if self.manifests.contains(&object.id()) => {
                    reach::named_in_manifest(object.bytes()).unwrap_or_default()
                }
                _ => Vec::new(),
            };
            for id in named.into_iter().filter(|id| !brought.contains(id)) {
                presence(connection, id)?.required(id)?;
            }
        }
        Ok(())
    }
}

/// Puts plain content first, and says which of it is to be written ahead so that at most `limit` bytes are left.
fn divide(objects: &mut [CompressedObject], manifests: &HashSet<ObjectId>, limit: u64) -> Vec<Range<usize>> {
    let mut left: u64 = objects.iter().map(CompressedObject::stored_bytes).sum();
    if left <= limit {
        return Vec::new();
    }
    let is_plain = |packed: &CompressedObject| {
        packed.object.kind() == ObjectKind::Blob && !manifests.contains(&packed.object.id())
    };
    objects.sort_by_key(|packed| !is_plain(packed));
    let mut parts: Vec<Range<usize>> = Vec::new();
    let mut bytes = 0;
    for (index, packed) in objects.iter().enumerate().take_while(|(_, packed)| is_plain(packed)) {
        if left <= limit {
            break;
        }
        let size = packed.stored_bytes();
        match parts.last_mut() {
            Some(part) if bytes + size <= limit => {
                part.end = index + 1;
                bytes += size;
            }
            _ => {
                parts.push(index..index + 1);
                bytes = size;
            }
        }
        left -= size;
    }
    parts
}

/// Refuses who does not hold the session.
pub(super) fn check_fence(
    connection: &Connection,
    session: SessionId,
    name: &str,
    fence: Fence,
) -> Result<(), Failure> {
    let mut sql = connection.prepare_cached("SELECT fence, owner FROM claims WHERE session = ?1")?;
    let claim: Option<(i64, Option<String>)> =
        sql.query_row([name], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
    match claim {
        Some((latest, Some(_))) if latest.cast_unsigned() == fence.0 => Ok(()),
        claim => {
            let owner = claim.and_then(|(_, owner)| owner).map(Owner::new);
            Err(StoreError::Fenced { session, fence, owner }.into())
        }
    }
}

/// The number of a session, if it exists.
pub(super) fn number_of(connection: &Connection, name: &str) -> Result<Option<i64>, Failure> {
    let mut sql = connection.prepare_cached("SELECT id FROM sessions WHERE session = ?1")?;
    Ok(sql.query_row([name], |row| row.get(0)).optional()?)
}

fn create(connection: &Connection, name: &str) -> Result<i64, Failure> {
    let mut sql = connection.prepare_cached("INSERT INTO sessions (session) VALUES (?1)")?;
    Ok(sql.insert([name])?)
}

/// Where a journal ends, and the checksum of its last record.
pub(super) fn end_of(
    connection: &Connection,
    session: SessionId,
    number: i64,
) -> Result<(Position, Checksum), Failure> {
    let sql = "SELECT id, checksum FROM records WHERE id BETWEEN ?1 AND ?2 ORDER BY id DESC LIMIT 1";
    let mut sql = connection.prepare_cached(sql)?;
    let mut rows = sql.query([first_key(number), last_key(number)])?;
    let Some(row) = rows.next()? else {
        return Ok((Position::START, Checksum::start(session)));
    };
    let position = position_of(row.get(0)?);
    let checksum = row.get_ref(1)?;
    let checksum = checksum.as_blob().ok().and_then(Checksum::stored);
    let damage = backstitch_core::ports::Damage::Checksum;
    let checksum = checksum.ok_or(StoreError::Damaged { session, position, damage })?;
    Ok((position.next(), checksum))
}
