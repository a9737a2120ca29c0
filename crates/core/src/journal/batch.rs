//! Batches: records that are appended together or not at all.

use super::Position;
use super::inbox::InboxId;
use super::record::{Record, RecordBody};
use crate::object::Object;
use crate::time::Timestamp;

/// Records and the objects that they refer to, to be appended as one.
#[derive(Debug, Clone, PartialEq)]
pub struct Batch {
    at: Timestamp,
    bodies: Vec<RecordBody>,
    objects: Vec<Object>,
    taken: Vec<InboxId>,
}

impl Batch {
    /// An empty batch, recorded at this moment.
    pub fn at(at: Timestamp) -> Self {
        Self { at, bodies: Vec::new(), objects: Vec::new(), taken: Vec::new() }
    }

    /// Adds a record at the end. What of it is too large for a record becomes an object of the batch.
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

    /// Adds all of another batch at the end. Its records count as recorded at the moment of this one.
    pub fn extend(&mut self, later: Self) -> &mut Self {
        self.bodies.extend(later.bodies);
        self.objects.extend(later.objects);
        self.taken.extend(later.taken);
        self
    }

    /// Adds an object that a record of the batch refers to.
    pub fn add_object(&mut self, object: Object) -> &mut Self {
        self.objects.push(object);
        self
    }

    /// Takes an item out of the session's inbox, together with the append. The records say what came of it.
    pub fn take(&mut self, item: InboxId) -> &mut Self {
        self.taken.push(item);
        self
    }

    /// How many records there are.
    pub fn len(&self) -> usize {
        self.bodies.len()
    }

    /// Whether there are no records.
    pub fn is_empty(&self) -> bool {
        self.bodies.is_empty()
    }

    /// What the records say, in order.
    pub fn bodies(&self) -> &[RecordBody] {
        &self.bodies
    }

    /// The objects.
    pub fn objects(&self) -> &[Object] {
        &self.objects
    }

    /// The items that are taken out of the session's inbox.
    pub fn taken(&self) -> &[InboxId] {
        &self.taken
    }

    /// When its records count as recorded.
    pub fn time(&self) -> Timestamp {
        self.at
    }

    /// The records as they stand in a journal whose next position is `start`, and the objects.
    pub fn into_records(self, start: Position) -> (Vec<Record>, Vec<Object>) {
        (numbered(self.bodies, start, self.at).collect(), self.objects)
    }

    /// The records as they will stand in a journal whose next position is `start`, when they are recorded at `at`: that of the
    /// batch, or of an earlier one that it joins. What they say is shared with the batch.
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
