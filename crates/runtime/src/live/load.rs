//! Loading of views and records from a store.
//!
//! A fork shares the records of its parent up to the fork's cut, so loading a fork also loads its ancestors.

use std::collections::HashSet;

use backstitch_core::id::SessionId;
use backstitch_core::journal::{Origin, Position, Record, RecordBody};
use backstitch_core::ports::{Store, StoreError};
use backstitch_core::view::JournalView;

use crate::error::RuntimeError;

/// The most records that are read at a time.
const READ_LIMIT: usize = 1_000;

/// Reads the records of a session from `from` up to `to`, or to the end.
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

/// Loads the view of a session at the end of its journal, or at a cut.
pub async fn load_view(
    store: &dyn Store,
    session: SessionId,
    at: Option<Position>,
) -> Result<JournalView, RuntimeError> {
    load_line(store, session, at).await?.fold(|_| {})
}

/// The records of a session and of its ancestors by fork, the eldest last.
pub(super) struct Line {
    session: SessionId,
    records: Vec<Vec<Record>>,
}

impl Line {
    /// Folds the view of the session. `each` receives the view at every cut before it, including those before
    /// the fork.
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

/// Maps an unknown session of a store to [`RuntimeError::SessionNotFound`].
fn not_found(error: StoreError) -> RuntimeError {
    match error {
        StoreError::NotFound { session } => RuntimeError::SessionNotFound { session },
        other => RuntimeError::Store(other),
    }
}
