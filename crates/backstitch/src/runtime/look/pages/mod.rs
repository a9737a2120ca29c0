//! Pages of lists, for programs that show sessions over a network.
//!
//! Each operation reads what one page needs. Those about one session are given its view, which [`Runtime::newer_view`] brings up to
//! date at the cost of the records that are new.

mod conversation;
mod files;
mod journal;
mod rows;
mod segments;
mod sessions;

use backstitch_runtime::{RuntimeError, read_records};
use serde::Serialize;

pub use conversation::TranscriptStart;
pub use journal::LogPageOptions;
pub use sessions::SessionsPageOptions;

use crate::id::SessionId;
use crate::journal::{Position, RecordBody};
use crate::report::{PageLimit, PageStart, RecordLine};
use crate::runtime::Runtime;
use crate::view::JournalView;

impl Runtime {
    /// Returns the number of records of a session.
    pub async fn head(&self, session: SessionId) -> Result<Position, RuntimeError> {
        // The first record says whether there is such a session.
        read_records(&*self.store.store, session, Position::START, Some(Position::START.next())).await?;
        Ok(self.store.store.head(session).await?)
    }

    /// Reads the records of a session from a position on, at most this many and these bytes of them. One that is larger is read all the
    /// same.
    pub async fn record_lines(
        &self,
        session: SessionId,
        from: Position,
        limit: PageLimit,
    ) -> Result<Vec<RecordLine>, RuntimeError> {
        let end = from.after(limit.rows.max(1));
        let (mut lines, mut bytes) = (Vec::new(), 0);
        for record in read_records(&*self.store.store, session, from, Some(end)).await? {
            let line = RecordLine::of(&record);
            if !limit.takes(lines.len(), &mut bytes, &line) {
                break;
            }
            lines.push(line);
        }
        Ok(lines)
    }

    /// Brings a view up to date, at the cost of the records that are new since then; `None` if there are none. After a rewind or a
    /// redaction it is loaded again, since these change what was read before.
    pub async fn newer_view(&self, view: &JournalView) -> Result<Option<JournalView>, RuntimeError> {
        let session = view.session_id();
        let store = &*self.store.store;
        let new = read_records(store, session, view.head(), None).await?;
        if new.is_empty() {
            return Ok(None);
        }
        let changes_past =
            |body: &RecordBody| matches!(body, RecordBody::Rewound(_) | RecordBody::Redacted(_));
        if new.iter().any(|record| changes_past(&record.body)) {
            return self.view(session).await.map(Some);
        }
        Ok(Some(view.clone().fold_after(&new, |_| {})?))
    }
}

/// Selects a page of a list. Returns the place of the first row, the rows, and the place of the next page.
fn page_of<T, R: Serialize>(
    total: usize,
    start: PageStart,
    limit: PageLimit,
    items: impl Iterator<Item = T>,
    row: impl Fn(T) -> R,
) -> (usize, Vec<R>, Option<usize>) {
    let from = start.place(total, limit);
    let (mut rows, mut bytes) = (Vec::new(), 0);
    for item in items.skip(from) {
        let row = row(item);
        if !limit.takes(rows.len(), &mut bytes, &row) {
            break;
        }
        rows.push(row);
    }
    let next = from + rows.len();
    (from, rows, (next < total).then_some(next))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_ends_at_its_rows_or_its_bytes() {
        let page = |start, rows, bytes| {
            page_of(5, start, PageLimit { rows, bytes }, 0..5_u32, |number| format!("{number:010}"))
        };
        let (from, rows, next) = page(PageStart::At(1), 2, 1000);
        assert_eq!((from, rows.len(), next), (1, 2, Some(3)));
        assert_eq!(page(PageStart::At(1), 100, 24).1.len(), 2, "a row has 12 bytes");
        assert_eq!(page(PageStart::At(1), 100, 1).1.len(), 1, "a page has at least one row");
        assert_eq!(page(PageStart::At(0), 0, 1000).1.len(), 1);
        let (from, rows, next) = page(PageStart::Last, 2, 1000);
        assert_eq!((from, rows.len(), next), (3, 2, None));
        assert_eq!(page(PageStart::At(9), 2, 1000), (5, Vec::new(), None));
    }
}
