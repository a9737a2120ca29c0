//! The records that a conversation consists of.
//!
//! A fork has the records of its parent before the fork, and a rewind hides records. So a conversation is a list of ranges of records, of
//! one or several journals, in order. It is read in both directions from any record on, without reading the rest.

use std::ops::Range;
use std::sync::Arc;

use backstitch_runtime::{RuntimeError, load_view, read_records};

use crate::id::SessionId;
use crate::journal::{InnerMessage, Origin, Point, Position, Record, RecordBody};
use crate::ports::Store;
use crate::session::Slice as _;
use crate::view::JournalView;

/// How many records are read at a time.
const CHUNK: u64 = 256;

/// Ranges of records, in the order of a conversation.
pub(super) struct Segments(Vec<(SessionId, Range<Position>)>);

impl Segments {
    /// Finds the records of the conversation of a view.
    pub(super) async fn of(store: &dyn Store, view: &JournalView) -> Result<Self, RuntimeError> {
        let own = |view: &JournalView| {
            let (session, ranges) = (view.session_id(), view.lineage().visible(view.head()));
            ranges.into_iter().map(move |range| (session, range))
        };
        let mut parts: Vec<Vec<_>> = vec![own(view).collect()];
        let mut origin = view.created().origin.clone();
        while let Origin::Fork { session, position } = origin {
            let parent = load_view(store, session, Some(position)).await?;
            parts.push(own(&parent).collect());
            origin = parent.created().origin.clone();
        }
        Ok(Self(parts.into_iter().rev().flatten().collect()))
    }

    /// Returns the first record.
    pub(super) fn start(&self) -> Option<Point> {
        self.0.first().map(|(session, range)| Point { session: *session, position: range.start })
    }

    /// Returns the place after the last record.
    pub(super) fn end(&self) -> Option<Point> {
        self.0.last().map(|(session, range)| Point { session: *session, position: range.end })
    }

    /// Finds the range of a record, or the next one after a record that is hidden now.
    fn index_of(&self, point: Point) -> Option<usize> {
        self.0.iter().position(|(session, range)| *session == point.session && point.position < range.end)
    }

    /// Reads the records from one on, until there are enough. Returns them, and the record after them.
    pub(super) async fn read_from(
        &self,
        store: &dyn Store,
        from: Point,
    ) -> Result<(Vec<(SessionId, Record)>, Option<Point>), RuntimeError> {
        let Some(index) = self.index_of(from) else { return Ok((Vec::new(), None)) };
        let (session, range) = &self.0[index];
        let start = from.position.max(range.start);
        let end = Position::new(start.number().saturating_add(CHUNK)).min(range.end);
        let records = read_records(store, *session, start, Some(end)).await?;
        let next = if end < range.end {
            Some(Point { session: *session, position: end })
        } else {
            self.0.get(index + 1).map(|(session, range)| Point { session: *session, position: range.start })
        };
        Ok((records.into_iter().map(|record| (*session, record)).collect(), next))
    }

    /// Reads the records before one. Returns them in order, and the place before which the others are.
    pub(super) async fn read_before(
        &self,
        store: &dyn Store,
        before: Point,
    ) -> Result<(Vec<(SessionId, Record)>, Option<Point>), RuntimeError> {
        let is_before = |(session, range): &&(SessionId, Range<Position>)| {
            *session == before.session && range.start < before.position
        };
        let Some(index) = self.0.iter().rposition(|part| is_before(&part)) else {
            // The first record of a journal: those of its parent come before it.
            let first = self.0.iter().position(|(session, _)| *session == before.session);
            let end = first.and_then(|index| self.0.get(index.checked_sub(1)?));
            return Ok((
                Vec::new(),
                end.map(|(session, range)| Point { session: *session, position: range.end }),
            ));
        };
        let (session, range) = &self.0[index];
        let end = before.position.min(range.end);
        let start = Position::new(end.number().saturating_sub(CHUNK)).max(range.start);
        let records = read_records(store, *session, start, Some(end)).await?;
        let previous = if start > range.start {
            Some(Point { session: *session, position: start })
        } else {
            let earlier = index.checked_sub(1).map(|index| &self.0[index]);
            earlier.map(|(session, range)| Point { session: *session, position: range.end })
        };
        Ok((records.into_iter().map(|record| (*session, record)).collect(), previous))
    }
}

/// Returns the messages of a record: the one that it appends, or those that a session was created with.
pub(super) fn messages_of(record: &Record) -> Vec<Arc<InnerMessage>> {
    match &record.body {
        RecordBody::MessageAppended(message) => vec![message.clone()],
        RecordBody::SessionCreated(created) => {
            let slices = created.state.iter().filter(|slice| slice.name == InnerMessage::NAME);
            let items = slices.flat_map(|slice| &slice.items);
            items.filter_map(|item| serde_json::from_value(item.clone()).ok().map(Arc::new)).collect()
        }
        _ => Vec::new(),
    }
}
