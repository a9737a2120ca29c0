//! Appends: one call of a function of the server, which checks everything and writes everything.
//!
//! The caller encodes records, links their checksums to the end of the journal as this process knows it, and compresses objects. Large content is written ahead, in
//! transactions of limited size: parts of large objects, and plain content of a batch that is larger than a transaction should be. Nothing refers to it before the batch
//! follows.

mod values;

use std::collections::HashSet;

use backstitch_core::crash_point;
use backstitch_core::id::SessionId;
use backstitch_core::journal::{Batch, CallChanges, InboxId, Position, RecordBody};
use backstitch_core::object::{Object, ObjectId, ObjectKind};
use backstitch_core::ports::{FenceToken, Owner, StoreError, check_batch};

use super::changes;
use super::claims::{HeldClaim, explain_fence};
use super::error::{Failure, code};
use super::index::PreparedSummary;
use super::link::Link;
use super::objects::{self, ObjectRows};
use super::outcome::{self, AppendOutcome};
use super::queue::EntryValues;
use super::retry::Attempts;
use super::schema::get;
use super::store::SharedStore;
use crate::chain::Checksum;
use crate::packed::{CompressedObject, Packer};
use crate::references;
use values::AppendValues;

/// Maximum size of a record in bytes: far below PostgreSQL's limit, and above the codec's.
const MOST_BYTES: u64 = 512 << 20;

/// Whether an append waits until it is durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CommitSync {
    /// It does.
    Now,
    /// A later append that waits makes it durable too.
    WithNext,
}

/// A batch with its records encoded and its objects compressed.
pub(super) struct PreparedBatch {
    expected: Position,
    at: i64,
    kinds: Vec<&'static str>,
    texts: Vec<String>,
    objects: Vec<CompressedObject>,
    /// Objects that records refer to and the batch does not contain.
    needed: Vec<Vec<u8>>,
    /// Objects that new trees and manifests name, and the batch does not contain.
    below: Vec<Vec<u8>>,
    /// Workspace manifests that records name.
    manifests: HashSet<ObjectId>,
    taken: Vec<InboxId>,
    changes: Option<String>,
    summary: Option<PreparedSummary>,
    entry: Option<EntryValues>,
}

impl PreparedBatch {
    pub(super) fn new(
        packer: &Packer,
        session: SessionId,
        expected: Position,
        batch: Batch,
    ) -> Result<Self, StoreError> {
        check_batch(session, expected, &batch)?;
        let brought: HashSet<ObjectId> = batch.objects().iter().map(Object::id).collect();
        let needed = batch.bodies().iter().flat_map(RecordBody::object_refs);
        let needed = needed.filter(|id| !brought.contains(id)).map(|id| id.as_bytes().to_vec()).collect();
        let manifests: HashSet<ObjectId> = match brought.is_empty() {
            true => HashSet::new(),
            false => batch.bodies().iter().flat_map(references::manifests_of).collect(),
        };
        let (taken, at) = (batch.taken().to_vec(), batch.time().unix_micros());
        let summary = batch.summary(session, expected).map(PreparedSummary::new).transpose()?;
        let entry = batch.queue_entry().map(EntryValues::new);
        let (records, objects) = batch.into_records(expected);
        let (mut kinds, mut texts) = (Vec::with_capacity(records.len()), Vec::with_capacity(records.len()));
        for record in &records {
            let position = record.position;
            let text =
                record.encode().map_err(|source| StoreError::Unstorable { session, position, source })?;
            if text.len() as u64 > MOST_BYTES {
                let (what, bytes) = (format!("record {position} of session {session}"), text.len() as u64);
                return Err(StoreError::TooLarge { what, bytes, limit: MOST_BYTES });
            }
            kinds.push(record.body.kind());
            texts.push(text);
        }
        let listed = records.into_iter().filter_map(|record| match record.body {
            RecordBody::CallFinished(finished) => Some((record.position, finished.changes.clone()?)),
            _ => None,
        });
        let listed: Vec<(Position, CallChanges)> = listed.collect();
        let changes = changes::rows_of(listed.iter().map(|(position, changes)| (*position, Some(changes))))?;
        let mut unique = HashSet::new();
        let objects = objects.into_iter().filter(|object| unique.insert(object.id()));
        let objects: Vec<CompressedObject> =
            objects.map(|object| CompressedObject::new(packer, object)).collect::<Result<_, _>>()?;
        let below = named_below(&objects, &manifests, &brought);
        Ok(Self {
            expected,
            at,
            kinds,
            texts,
            objects,
            needed,
            below,
            manifests,
            taken,
            changes,
            summary,
            entry,
        })
    }

    /// Position after the last record.
    fn end(&self) -> Position {
        self.expected.after(self.texts.len())
    }

    /// Checksums of the records, after that of the record before them.
    fn checksums(&self, mut before: Checksum) -> Vec<Checksum> {
        let next = self.texts.iter().map(|text| {
            before = before.next(text.as_bytes());
            before
        });
        next.collect()
    }

    /// Removes the objects that are written ahead, so that a transaction writes at most `limit` bytes of objects: only plain content.
    fn take_ahead(&mut self, limit: u64) -> Vec<CompressedObject> {
        let mut left: u64 = self.objects.iter().map(CompressedObject::row_bytes).sum();
        let manifests = &self.manifests;
        let mut ahead = Vec::new();
        self.objects = std::mem::take(&mut self.objects)
            .into_iter()
            .filter_map(|packed| {
                let (id, bytes) = (packed.object.id(), packed.row_bytes());
                let is_plain = packed.object.kind() == ObjectKind::Blob && !manifests.contains(&id);
                if left <= limit || !is_plain {
                    return Some(packed);
                }
                left -= bytes;
                ahead.push(packed);
                None
            })
            .collect();
        ahead
    }
}

/// Objects that new trees and manifests name and the batch does not bring. A capture contains only the objects that were not stored at that time: if content was removed
/// since the claim, some of the others may be gone. Every stored object is complete, so direct references are enough.
fn named_below(
    objects: &[CompressedObject],
    manifests: &HashSet<ObjectId>,
    brought: &HashSet<ObjectId>,
) -> Vec<Vec<u8>> {
    let mut named: Vec<ObjectId> = Vec::new();
    for object in objects.iter().map(|packed| &packed.object) {
        match object.kind() {
            ObjectKind::Tree => named.extend(references::below(object).unwrap_or_default()),
            _ if manifests.contains(&object.id()) => {
                named.extend(references::named_in_manifest(object.bytes()).unwrap_or_default());
            }
            _ => {}
        }
    }
    named.sort_unstable();
    named.dedup();
    named.retain(|id| !brought.contains(id));
    named.into_iter().map(|id| id.as_bytes().to_vec()).collect()
}

/// Appends a batch.
pub(super) async fn append(
    shared: &SharedStore,
    session: SessionId,
    expected: Position,
    fence: FenceToken,
    batch: Batch,
    sync: CommitSync,
) -> Result<Position, Failure> {
    shared.check_writable()?;
    let prepared = PreparedBatch::new(&shared.packer, session, expected, batch)?;
    let Some(held) = shared.claims.get(session, fence) else {
        return Err(explain_fence(shared, session, fence).await);
    };
    let appended = append_by_claim(shared, (session, fence), held, prepared, sync).await;
    match &appended {
        // What is not durable yet may be lost with the server.
        Ok(head) if sync == CommitSync::Now => shared.claims.remember(session, expected..*head),
        Err(Failure::Port(error)) if matches!(**error, StoreError::HistoryLost { .. }) => {
            shared.claims.note_reported(session);
        }
        _ => {}
    }
    appended
}

async fn append_by_claim(
    shared: &SharedStore,
    (session, fence): (SessionId, FenceToken),
    held: HeldClaim,
    mut prepared: PreparedBatch,
    sync: CommitSync,
) -> Result<Position, Failure> {
    // The server lost it between two claims of this process.
    if let Some((acknowledged, head)) = shared.claims.lost_end(session, fence) {
        return Err(StoreError::HistoryLost { session, acknowledged, head }.into());
    }
    let expected = prepared.expected;
    let held = match held.head == expected {
        true => held,
        false => at_end(shared, session, fence, held, expected).await?,
    };
    let ahead = prepared.take_ahead(shared.server.options.transaction_bytes);
    if ahead.iter().chain(&prepared.objects).any(CompressedObject::is_large) || !ahead.is_empty() {
        // Nothing is written for a claim that would be refused.
        let end = outcome::JournalEnd::read(shared, session, held.number).await?;
        if end.claim != Some(held.claim) {
            return Err(end.fenced(session, fence));
        }
    }
    prepared.below.extend(ahead.iter().map(|packed| packed.object.id().as_bytes().to_vec()));
    objects::write_ahead(&shared.server, ahead).await?;
    let rows = ObjectRows::write_parts(&shared.server, std::mem::take(&mut prepared.objects)).await?;
    let sums = prepared.checksums(held.chain);
    let Some(last) = sums.last().copied() else { return Err(StoreError::EmptyBatch.into()) };
    let end = prepared.end();
    let place = AppendOutcome { session, fence, held, expected, end, last };
    let mut attempts = Attempts::within(shared.server.options.deadline);
    let mut is_ambiguous = false;
    crash_point!("store.before_commit");
    loop {
        let failure = match send(shared, &prepared, &held, &rows, &sums, sync).await {
            Ok(position) => {
                crash_point!("store.after_commit");
                shared.claims.advance(session, fence, position, last);
                return Ok(position);
            }
            Err(failure) => failure,
        };
        let reason = "the server did not accept the batch in time".to_owned();
        let mut late = StoreError::Unavailable { reason, source: None };
        let may_be_own = is_ambiguous && matches!(failure.code(), Some(code::POSITION | code::STALE));
        if failure.is_outage() || may_be_own {
            is_ambiguous = true;
            // The statement may have been committed, and its answer was lost.
            if outcome::resolve(shared, &place, failure).await? == outcome::StoredBatch::Yes {
                shared.claims.advance(session, fence, end, last);
                return Ok(end);
            }
        } else if !failure.is_rolled_back() {
            // An earlier attempt may still be on its way, and be stored.
            if is_ambiguous {
                return Err(outcome::unknown(session, failure));
            }
            let used = prepared.entry.as_ref().and_then(|entry| entry.key_used(&failure));
            return Err(used.map_or_else(|| refusal(&place, failure), Failure::from));
        } else if let full @ StoreError::Full { .. } = StoreError::from(failure) {
            late = full;
        }
        if !attempts.wait().await {
            return Err(match is_ambiguous {
                // An earlier attempt may still be on its way.
                true => StoreError::OutcomeUnknown { session, source: late.into() }.into(),
                false => late.into(),
            });
        }
    }
}

/// Reads the end of a journal that is not where this process knows it.
async fn at_end(
    shared: &SharedStore,
    session: SessionId,
    fence: FenceToken,
    held: HeldClaim,
    expected: Position,
) -> Result<HeldClaim, Failure> {
    let end = outcome::JournalEnd::read(shared, session, held.number).await?;
    if end.claim != Some(held.claim) {
        return Err(end.fenced(session, fence));
    }
    if end.head < held.head {
        return Err(StoreError::HistoryLost { session, acknowledged: held.head, head: end.head }.into());
    }
    if end.head != expected {
        return Err(StoreError::Conflict { session, expected, actual: end.head }.into());
    }
    Ok(HeldClaim { head: end.head, chain: end.chain, ..held })
}

/// The error of a batch that the server refused.
fn refusal(place: &AppendOutcome, failure: Failure) -> Failure {
    let AppendOutcome { session, fence, expected, held, .. } = *place;
    let detail = failure.detail().to_owned();
    match failure.code() {
        Some(code::STALE) => {
            let owner = Some(detail).filter(|owner| !owner.is_empty()).map(Owner::new);
            StoreError::Fenced { session, fence, owner }.into()
        }
        Some(code::POSITION) => {
            let actual = Position::new(detail.parse().unwrap_or_default());
            match actual < held.head {
                true => StoreError::HistoryLost { session, acknowledged: held.head, head: actual }.into(),
                false => StoreError::Conflict { session, expected, actual }.into(),
            }
        }
        Some(code::OBJECT) => missing_object(&detail).map_or(failure, Failure::from),
        Some(code::ITEM) => {
            let item = InboxId(detail.parse().unwrap_or_default());
            StoreError::NotInInbox { session, item }.into()
        }
        _ => failure,
    }
}

/// The error of an object that is not stored: its id, and the encoding of its row or -1.
fn missing_object(detail: &str) -> Option<StoreError> {
    let (id, encoding) = detail.split_once(' ')?;
    let object: ObjectId = id.parse().ok()?;
    Some(match encoding {
        "2" => StoreError::Pruned { object },
        "3" => StoreError::LostObject { object },
        _ => StoreError::MissingObject { object },
    })
}

/// Sends a batch to the server.
async fn send(
    shared: &SharedStore,
    batch: &PreparedBatch,
    held: &HeldClaim,
    rows: &ObjectRows,
    sums: &[Checksum],
    sync: CommitSync,
) -> Result<Position, Failure> {
    let values = AppendValues::new(batch, held, rows, sums, sync);
    let answer = shared.server.query(values.sql(), &values.parameters()).await?;
    let row = answer.first().ok_or_else(|| StoreError::Backend("an append returned nothing".into()))?;
    Ok(Position::new(get::<i64>(row, 0)?.cast_unsigned()))
}

/// Appends a batch inside of a transaction, in which the session was claimed.
pub(super) fn append_with(
    link: &Link<'_>,
    packer: &Packer,
    (session, fence): (SessionId, FenceToken),
    held: &HeldClaim,
    batch: Batch,
) -> Result<(), Failure> {
    let mut prepared = PreparedBatch::new(packer, session, held.head, batch)?;
    let objects = std::mem::take(&mut prepared.objects);
    let rows = ObjectRows::write_parts_with(link, objects)?;
    let sums = prepared.checksums(held.chain);
    let Some(last) = sums.last().copied() else { return Err(StoreError::EmptyBatch.into()) };
    let place = AppendOutcome { session, fence, held: *held, expected: held.head, end: prepared.end(), last };
    let values = AppendValues::new(&prepared, held, &rows, &sums, CommitSync::Now);
    link.query(values.sql(), &values.parameters()).map(drop).map_err(|failure| refusal(&place, failure))
}
