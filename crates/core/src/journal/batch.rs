//! Batches: records that are appended together or not at all.

use super::Position;
use super::inbox::InboxId;
use super::queue_entry::QueueEntry;
use super::record::{Record, RecordBody};
use super::summary::SessionSummary;
use super::tag::TagChange;
use crate::id::SessionId;
use crate::object::Object;
use crate::time::Timestamp;

/// Records, and the objects that they refer to, that are appended atomically.
#[derive(Debug, Clone, PartialEq)]
pub struct Batch {
    at: Timestamp,
    bodies: Vec<RecordBody>,
    objects: Vec<Object>,
    taken: Vec<InboxId>,
    summary: Option<Box<SessionSummary>>,
    entry: Option<Box<QueueEntry>>,
}

impl Batch {
    /// Creates an empty batch with this time for all records.
    pub fn at(at: Timestamp) -> Self {
        Self { at, bodies: Vec::new(), objects: Vec::new(), taken: Vec::new(), summary: None, entry: None }
    }

    /// Adds a record at the end. Fields that are too large for a record become objects of the batch.
    pub fn push(&mut self, body: impl Into<RecordBody>) -> &mut Self {
        let mut body = body.into();
        body.spill(&mut self.objects);
        self.bodies.push(body);
        self
    }

    /// Adds a record at the end.
    #[must_use]
    pub fn with(mut self, body: impl Into<RecordBody>) -> Self {
        self.push(body);
        self
    }

    /// Adds all of another batch at the end, and takes its summary and its queue entry. Its records get the time of this
    /// batch.
    pub fn extend(&mut self, later: Self) -> &mut Self {
        self.bodies.extend(later.bodies);
        self.objects.extend(later.objects);
        self.taken.extend(later.taken);
        self.summary = later.summary;
        self.entry = later.entry.or(self.entry.take());
        self
    }

    /// Adds an object that a record of the batch refers to.
    pub fn add_object(&mut self, object: Object) -> &mut Self {
        self.objects.push(object);
        self
    }

    /// Removes an item from the session's inbox, atomically with the append. The records describe the
    /// outcome.
    pub fn take(&mut self, item: InboxId) -> &mut Self {
        self.taken.push(item);
        self
    }

    /// Adds the session to the queue of the store, atomically with the append. If the key of the entry was used before, the
    /// append fails with [`StoreError::KeyUsed`](crate::ports::StoreError::KeyUsed).
    pub fn enqueue(&mut self, entry: QueueEntry) -> &mut Self {
        self.entry = Some(Box::new(entry));
        self
    }

    /// The queue entry, if the append enqueues the session.
    pub fn queue_entry(&self) -> Option<&QueueEntry> {
        self.entry.as_deref()
    }

    /// Sets the summary of the session as it is after the batch, which a store writes together with the records. After a batch
    /// without one the session counts as not indexed.
    pub fn summarize(&mut self, summary: SessionSummary) -> &mut Self {
        self.summary = Some(Box::new(summary));
        self
    }

    /// The summary that a store has to write when the batch is appended to this session at `start`. One of another session or of
    /// another position is ignored. There is none if the batch changes tags: stores write tags with the first summary of a session, so
    /// the session is indexed again.
    pub fn summary(&self, session: SessionId, start: Position) -> Option<&SessionSummary> {
        let fits = |summary: &&SessionSummary| {
            summary.session == session && summary.position == start.after(self.bodies.len())
        };
        self.summary.as_deref().filter(fits).filter(|_| !self.bodies.iter().any(TagChange::is_in))
    }

    /// Returns the number of records.
    pub fn len(&self) -> usize {
        self.bodies.len()
    }

    /// Returns whether there are no records.
    pub fn is_empty(&self) -> bool {
        self.bodies.is_empty()
    }

    /// The bodies of the records, in order.
    pub fn bodies(&self) -> &[RecordBody] {
        &self.bodies
    }

    /// The objects.
    pub fn objects(&self) -> &[Object] {
        &self.objects
    }

    /// The items that the append removes from the session's inbox.
    pub fn taken(&self) -> &[InboxId] {
        &self.taken
    }

    /// The time of all records.
    pub fn time(&self) -> Timestamp {
        self.at
    }

    /// Returns the records for a journal whose next position is `start`, and the objects.
    pub fn into_records(self, start: Position) -> (Vec<Record>, Vec<Object>) {
        (numbered(self.bodies, start, self.at).collect(), self.objects)
    }

    /// Returns the records for a journal whose next position is `start`, recorded at `at`: the time of the
    /// batch, or of an earlier batch that it joins. Their bodies are shared with the batch.
    pub fn records(&self, start: Position, at: Timestamp) -> impl Iterator<Item = Record> {
        numbered(self.bodies.iter().cloned(), start, at)
    }
}

fn numbered(
    bodies: impl IntoIterator<Item = RecordBody>,
    start: Position,
    at: Timestamp,
) -> impl Iterator<Item = Record> {
    bodies.into_iter().enumerate().map(move |(index, body)| Record::new(start.after(index), at, body))
}
