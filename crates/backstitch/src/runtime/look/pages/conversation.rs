//! Pages of a conversation.

use std::sync::Arc;

use backstitch_runtime::{PointSpec, RuntimeError, readable_message};

use super::super::view_at;
use super::segments::{Segments, messages_of};
use crate::id::SessionId;
use crate::journal::{InnerMessage, Point, Position};
use crate::report::{PageLimit, TranscriptEntry, TranscriptPage, Version};
use crate::runtime::Runtime;
use crate::view::JournalView;

/// Which part of a conversation is read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum TranscriptStart {
    /// The beginning.
    #[default]
    First,
    /// The end.
    Last,
    /// From a cursor on.
    From(String),
    /// What is before a cursor.
    Before(String),
}

impl Runtime {
    /// Reads a page of the conversation at a point, or at the head. `head` is the view there. Fails with [`RuntimeError::NoSuchPoint`]
    /// for a cursor that is not one of this conversation.
    pub async fn transcript_page(
        &self,
        head: &JournalView,
        at: Option<&PointSpec>,
        start: TranscriptStart,
        limit: PageLimit,
    ) -> Result<TranscriptPage, RuntimeError> {
        let store = &*self.store.store;
        let view = match at {
            Some(point) => view_at(store, head, point).await?.0,
            None => head.clone(),
        };
        let segments = Segments::of(store, &view).await?;
        let mut page = TranscriptPage {
            v: Version,
            session: head.session_id(),
            total: view.message_count(),
            messages: Vec::new(),
            next: None,
            previous: None,
        };
        let from = match &start {
            TranscriptStart::First => segments.start(),
            TranscriptStart::From(cursor) => Some(point_of(cursor)?),
            TranscriptStart::Last => return self.read_back(&segments, segments.end(), limit, page).await,
            TranscriptStart::Before(cursor) => {
                let before = point_of(cursor)?;
                page.next = Some(cursor.clone());
                return self.read_back(&segments, Some(before), limit, page).await;
            }
        };
        page.previous = from.filter(|from| Some(*from) != segments.start()).map(cursor_of);
        let (mut next, mut bytes) = (from, 0);
        'pages: while let Some(from) = next {
            let (records, after) = segments.read_from(store, from).await?;
            for (session, record) in records {
                let here = Point { session, position: record.position };
                let rows = self.rows_of(here, messages_of(&record), limit).await?;
                for row in &rows {
                    if !limit.takes(page.messages.len(), &mut bytes, row) {
                        next = Some(here);
                        break 'pages;
                    }
                }
                page.messages.extend(rows);
            }
            next = after;
        }
        page.next = next.map(cursor_of);
        Ok(page)
    }

    /// Reads the messages before a place.
    async fn read_back(
        &self,
        segments: &Segments,
        before: Option<Point>,
        limit: PageLimit,
        mut page: TranscriptPage,
    ) -> Result<TranscriptPage, RuntimeError> {
        let store = &*self.store.store;
        let (mut previous, mut bytes, mut found) = (before, 0, Vec::new());
        'pages: while let Some(before) = previous {
            let (records, earlier) = segments.read_before(store, before).await?;
            for (session, record) in records.into_iter().rev() {
                let here = Point { session, position: record.position };
                let rows = self.rows_of(here, messages_of(&record), limit).await?;
                for row in &rows {
                    if !limit.takes(found.len(), &mut bytes, row) {
                        previous = Some(Point { session, position: record.position.next() });
                        break 'pages;
                    }
                }
                found.extend(rows.into_iter().rev());
            }
            previous = earlier;
        }
        found.reverse();
        (page.messages, page.previous) = (found, previous.map(cursor_of));
        Ok(page)
    }

    /// Returns the messages of a record with their content. What is larger than a page is left out.
    async fn rows_of(
        &self,
        here: Point,
        messages: Vec<Arc<InnerMessage>>,
        limit: PageLimit,
    ) -> Result<Vec<TranscriptEntry>, RuntimeError> {
        let mut rows = Vec::new();
        for message in messages {
            let whole = readable_message(&*self.store.store, &message).await?;
            let size = serde_json::to_vec(&whole).map_or(0, |whole| whole.len());
            let is_cut = size > limit.bytes;
            let message = if is_cut { message } else { whole };
            rows.push(TranscriptEntry { session: here.session, position: here.position, is_cut, message });
        }
        Ok(rows)
    }
}

/// Writes the cursor of a record.
fn cursor_of(point: Point) -> String {
    format!("{}:{}", point.session, point.position)
}

/// Reads the cursor of a record.
fn point_of(cursor: &str) -> Result<Point, RuntimeError> {
    let read = |cursor: &str| {
        let (session, position) = cursor.split_once(':')?;
        let (session, position): (SessionId, u64) = (session.parse().ok()?, position.parse().ok()?);
        Some(Point { session, position: Position::new(position) })
    };
    read(cursor).ok_or_else(|| RuntimeError::NoSuchPoint {
        point: cursor.chars().take(80).collect(),
        reason: "it is not a cursor of a conversation".to_owned(),
    })
}
