//! From a store to a view, and to values that are too large for their records.
//!
//! A fork shares the records of its parent up to the place of the fork, so loading one loads its line of parents first, the
//! eldest at the beginning.

use std::collections::HashSet;

use backstitch_core::id::SessionId;
use backstitch_core::journal::{Origin, Position, Record, RecordBody};
use backstitch_core::ports::{Store, StoreError};
use backstitch_core::view::JournalView;

use crate::error::RuntimeError;

/// How many records are read at a time.
const READ_LIMIT: usize = 1_000;

/// The records of a session from `from` up to `to`, or to the end.
pub async fn read_records(
    store: &dyn Store,
    session: SessionId,
    from: Position,
    to: Option<Position>,
) -> Result<Vec<Record>, RuntimeError> {
    let mut records: Vec<Record> = Vec::new();
    loop {
        let next = from.after(records.len());
        let wanted = to.map_or(u64::MAX, |to| to.number().saturating_sub(next.number()));
        let limit = READ_LIMIT.min(usize::try_from(wanted).unwrap_or(usize::MAX));
        if limit == 0 {
            return Ok(records);
        }
        let more = store.read(session, next, limit).await.map_err(not_found)?;
        if more.is_empty() {
            return Ok(records);
        }
        records.extend(more);
    }
}

/// The view of a session as its journal stands, or as it stood at a cut.
pub async fn load_view(
    store: &dyn Store,
    session: SessionId,
    at: Option<Position>,
) -> Result<JournalView, RuntimeError> {
    load_line(store, session, at).await?.fold(|_| {})
}

/// The records of a session and of those that it is a fork of, the eldest last.
pub(super) struct Line {
    session: SessionId,
    records: Vec<Vec<Record>>,
}

impl Line {
    /// The view of the session. `each` is shown the view of every cut on the way, also of those before the fork.
    pub(super) fn fold(&self, mut each: impl FnMut(&JournalView)) -> Result<JournalView, RuntimeError> {
        let mut view: Option<JournalView> = None;
        for records in self.records.iter().rev() {
            view = Some(JournalView::fold_each(view.as_ref(), records, &mut each)?);
        }
        view.ok_or(RuntimeError::SessionNotFound { session: self.session })
    }
}

/// Reads the records that the view of a session is folded from.
pub(super) async fn load_line(
    store: &dyn Store,
    session: SessionId,
    at: Option<Position>,
) -> Result<Line, RuntimeError> {
    let mut line = Line { session, records: Vec::new() };
    let mut seen = HashSet::new();
    let (mut session, mut at) = (session, at);
    loop {
        if !seen.insert(session) {
            return Err(RuntimeError::CircularFork { session });
        }
        let records = read_records(store, session, Position::START, at).await?;
        let origin = match records.first().map(|first| &first.body) {
            Some(RecordBody::SessionCreated(created)) => created.origin.clone(),
            _ => Origin::Root,
        };
        line.records.push(records);
        match origin {
            Origin::Fork { session: parent, position } => (session, at) = (parent, Some(position)),
            Origin::Root | Origin::Call { .. } => return Ok(line),
        }
    }
}

/// A session that the store does not know is a conversation that nobody had.
fn not_found(error: StoreError) -> RuntimeError {
    match error {
        StoreError::NotFound { session } => RuntimeError::SessionNotFound { session },
        other => RuntimeError::Store(other),
    }
}
