//! Appends: all checks first, then all writes, in one transaction.
//!
//! The caller encodes records, forms their rows and compresses objects before the transaction begins, since the transaction may run
//! on the thread of another caller, for which all of a group wait. The transaction checks
//! the fence, the position, objects, the inbox and the key of a queue entry, in this order; then it writes objects, records after
//! them, and last what the index has of them: the paths that calls changed, and the summary of the session.
//!
//! A batch with more objects than a transaction should hold, such as the first capture of a large directory,
//! has file content written ahead in transactions of its own. Nothing refers to that content until the
//! records follow, and a garbage collection may delete it, so the last transaction writes missing objects
//! again. Only plain content is written ahead, never objects that name others: every stored object is
//! complete.

use std::collections::HashSet;
use std::ops::Range;

use backstitch_core::id::SessionId;
use backstitch_core::journal::{Batch, CallChanges, InboxId, Position, QueueEntry, RecordBody};
use backstitch_core::object::{Object, ObjectId, ObjectKind};
use backstitch_core::ports::{FenceToken, StoreError, check_batch};
use rusqlite::Connection;

use super::claims::check_fence;
use super::error::Failure;
use super::index::{self, PreparedSummary};
use super::keys::{MOST_RECORDS, end_of, first_key};
use super::objects::{CompressedObject, Packer, Presence, presence};
use super::row::{PreparedRecord, RowContext, RowInserter};
use super::sql::first;
use super::{changes, generation, inbox, queue, removals};
use crate::chain::Checksum;
use crate::references;

/// Maximum size of a record in bytes: far below SQLite's limit, and above the codec's.
const MOST_BYTES: u64 = 512 << 20;

/// A batch with its rows formed and its objects compressed.
pub(super) struct PreparedBatch {
    session: SessionId,
    /// The session's id in its stored form.
    name: String,
    expected: Position,
    fence: FenceToken,
    records: Vec<PreparedRecord>,
    objects: Vec<CompressedObject>,
    /// Ranges of objects to write ahead, one transaction each. These objects come first in `objects`.
    ahead: Vec<Range<usize>>,
    /// Objects that records refer to and the batch does not contain.
    needed: Vec<ObjectId>,
    /// Workspace manifests that records name.
    manifests: HashSet<ObjectId>,
    taken: Vec<InboxId>,
    /// What the calls that the batch ends have changed, by the position of their ends.
    changes: Vec<(Position, CallChanges)>,
    summary: Option<PreparedSummary>,
    entry: Option<QueueEntry>,
    /// The garbage collection counter at the time of the claim.
    generation: Option<i64>,
}

impl PreparedBatch {
    /// Encodes a batch. `generation` is the garbage collection counter at the time of the claim.
    pub(super) fn new(
        packer: &Packer,
        session: SessionId,
        expected: Position,
        fence: FenceToken,
        batch: Batch,
        generation: Option<i64>,
    ) -> Result<Self, Failure> {
        check_batch(session, expected, &batch)?;
        let brought: HashSet<ObjectId> = batch.objects().iter().map(Object::id).collect();
        let mut needed: Vec<ObjectId> = batch.bodies().iter().flat_map(RecordBody::object_refs).collect();
        needed.retain(|id| !brought.contains(id));
        let manifests = if brought.is_empty() {
            HashSet::new()
        } else {
            batch.bodies().iter().flat_map(references::manifests_of).collect()
        };
        let taken = batch.taken().to_vec();
        let summary = batch.summary(session, expected).map(PreparedSummary::new).transpose()?;
        let entry = batch.queue_entry().cloned();
        let name = session.to_string();
        let (given, objects) = batch.into_records(expected);
        let mut records: Vec<PreparedRecord> = Vec::with_capacity(given.len());
        for record in &given {
            let position = record.position;
            let encoded = record.encode_parts().map_err(|source| StoreError::Unstorable {
                session,
                position,
                source,
            })?;
            let bytes = encoded.text.len() as u64;
            if bytes > MOST_BYTES {
                let what = format!("record {position} of session {session}");
                return Err(StoreError::TooLarge { what, bytes, limit: MOST_BYTES }.into());
            }
            let context = RowContext { session: &name, before: records.last().map(PreparedRecord::text) };
            let prepared = PreparedRecord::new(encoded, context);
            records.push(prepared);
        }
        let changes = given.into_iter().filter_map(|record| match record.body {
            RecordBody::CallFinished(finished) => Some((record.position, finished.changes.clone()?)),
            _ => None,
        });
        let changes = changes.collect();
        let mut unique = HashSet::new();
        let objects = objects.into_iter().filter(|object| unique.insert(object.id()));
        let objects: Vec<CompressedObject> =
            objects.map(|object| CompressedObject::new(packer, object)).collect::<Result<_, _>>()?;
        Ok(Self {
            session,
            name,
            expected,
            fence,
            records,
            objects,
            ahead: Vec::new(),
            needed,
            manifests,
            taken,
            changes,
            summary,
            entry,
            generation,
        })
    }

    /// Plans to write objects ahead if the batch exceeds the limit of one transaction.
    pub(super) fn divided(mut self, limit: u64) -> Self {
        self.ahead = divide(&mut self.objects, &self.manifests, limit);
        self
    }

    /// Ranges of objects that must be written before the batch itself.
    pub(super) fn parts_ahead(&self) -> &[Range<usize>] {
        &self.ahead
    }

    /// Size of a range of objects in bytes, as stored.
    pub(super) fn bytes_of(&self, part: &Range<usize>) -> u64 {
        self.objects[part.clone()].iter().map(CompressedObject::stored_bytes).sum()
    }

    /// Size in bytes of the last transaction: records, and objects that are not written ahead.
    pub(super) fn bytes(&self) -> u64 {
        let texts: u64 = self.records.iter().map(|record| record.text().len() as u64).sum();
        texts + self.bytes_of(&(self.written_ahead()..self.objects.len()))
    }

    fn written_ahead(&self) -> usize {
        self.ahead.last().map_or(0, |part| part.end)
    }

    /// Writes a range of objects ahead, unless the claim is stale and the batch would be refused.
    pub(super) fn write_ahead(&self, connection: &Connection, part: &Range<usize>) -> Result<(), Failure> {
        check_fence(connection, self.session, &self.name, self.fence)?;
        self.objects[part.clone()].iter().try_for_each(|object| object.insert(connection))
    }

    /// Checks the batch, then writes it. Nothing is written before all checks have passed.
    pub(super) fn write(&self, connection: &Connection) -> Result<Position, Failure> {
        let session = self.session;
        let number = self.check_claim(connection)?;
        let (actual, mut checksum) = match number {
            Some(number) => end_of(connection, session, number)?,
            None => (Position::START, Checksum::start(session)),
        };
        if actual != self.expected {
            return Err(StoreError::Conflict { session, expected: self.expected, actual }.into());
        }
        let after = actual.after(self.records.len());
        if after.number() > MOST_RECORDS {
            let what = format!("the journal of session {session}, in records,");
            return Err(StoreError::TooLarge { what, bytes: after.number(), limit: MOST_RECORDS }.into());
        }
        for id in &self.needed {
            presence(connection, *id)?.require(*id)?;
        }
        self.check_below(connection)?;
        for (index, item) in self.taken.iter().enumerate() {
            if self.taken[..index].contains(item) || !inbox::waits(connection, &self.name, *item)? {
                return Err(StoreError::NotInInbox { session, item: *item }.into());
            }
        }
        self.entry.as_ref().map_or(Ok(()), |entry| queue::check_key(connection, entry))?;

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
        let start = first_key(number) + actual.number().cast_signed();
        let mut rows = RowInserter::new(connection)?;
        for (key, record) in (start..).zip(&self.records) {
            checksum = checksum.next(record.text().as_bytes());
            rows.insert(key, checksum, record)?;
        }
        for (position, changed) in &self.changes {
            changes::write(connection, first_key(number) + position.number().cast_signed(), Some(changed))?;
        }
        match &self.summary {
            Some(summary) => summary.write(connection, number)?,
            None => index::forget(connection, number)?,
        }
        if let Some(entry) = &self.entry {
            queue::put(connection, &self.name, number, entry)?;
        }
        Ok(after)
    }

    /// Checks the fence, and returns the number of the session if it exists. One statement does both.
    fn check_claim(&self, connection: &Connection) -> Result<Option<i64>, Failure> {
        let sql = "SELECT (SELECT fence FROM claims WHERE session = ?1 AND owner IS NOT NULL),
            (SELECT id FROM sessions WHERE session = ?1)";
        let found: Option<(Option<i64>, Option<i64>)> =
            first(connection, sql, [&self.name], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let (fence, number) = found.unwrap_or_default();
        if fence.map(i64::cast_unsigned) != Some(self.fence.0) {
            // It fails, with the owner of the claim.
            check_fence(connection, self.session, &self.name, self.fence)?;
        }
        Ok(number)
    }

    /// Fails if a new tree or manifest names an object that is missing.
    ///
    /// A capture contains only the objects that were not stored at that time. If garbage was collected since
    /// the session was claimed, some of the others may be gone. Every stored object is complete, so it is
    /// enough to check the direct references of the new objects.
    fn check_below(&self, connection: &Connection) -> Result<(), Failure> {
        if self.objects.is_empty() || self.generation == Some(generation::current(connection)?) {
            return Ok(());
        }
        let brought: HashSet<ObjectId> = self.objects.iter().map(|packed| packed.object.id()).collect();
        let objects = self.objects.iter().map(|packed| &packed.object);
        for object in objects {
            let named: Vec<ObjectId> = match object.kind() {
                ObjectKind::Tree => references::below(object).unwrap_or_default(),
                _ if self.manifests.contains(&object.id()) => {
                    references::named_in_manifest(object.bytes()).unwrap_or_default()
                }
                _ => Vec::new(),
            };
            for id in named.into_iter().filter(|id| !brought.contains(id)) {
                presence(connection, id)?.require(id)?;
            }
        }
        Ok(())
    }
}

/// Sorts plain content first, and returns the ranges of it to write ahead so that at most `limit` bytes
/// remain.
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

/// Adds a session to the list, and returns its number.
pub(super) fn create(connection: &Connection, name: &str) -> Result<i64, Failure> {
    removals::forget(connection, name)?;
    // Records of a removed session may still exist under its number.
    let sql = "INSERT INTO sessions (id, session) SELECT 1 + max(
            coalesce((SELECT max(id) FROM sessions), 0), coalesce((SELECT max(number) FROM removals), 0)), ?1";
    let mut sql = connection.prepare_cached(sql)?;
    Ok(sql.insert([name])?)
}
