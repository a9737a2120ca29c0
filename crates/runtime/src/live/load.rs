//! Loading of views and records from a store.
//!
//! A fork shares the records of its parent up to the fork's cut, so loading a fork also loads its ancestors. A
//! snapshot of a session replaces all records before it, also those of its ancestors. A snapshot that cannot be
//! used is ignored, and all records are folded.

use std::collections::HashSet;
use std::sync::Arc;

use backstitch_core::id::SessionId;
use backstitch_core::journal::{Origin, Position, Record, RecordBody, SessionCreated};
use backstitch_core::ports::{BoxFuture, Store, StoreError};
use backstitch_core::view::{FoldError, FoldProblem, JournalView};

use crate::error::{Result, RuntimeError};

/// The most records that are read at a time.
const READ_LIMIT: usize = 1_000;

/// Reads the records of a session from `from` up to `to`, or to the end.
pub async fn read_records(
    store: &dyn Store,
    session: SessionId,
    from: Position,
    to: Option<Position>,
) -> Result<Vec<Record>> {
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

/// Loads the view of a session at the end of its journal, or at a cut. If the session has a usable snapshot, only
/// the records after it are read.
pub fn load_view(
    store: &dyn Store,
    session: SessionId,
    at: Option<Position>,
) -> BoxFuture<'_, Result<JournalView>> {
    Box::pin(async move { Ok(load(store, session, at).await?.view) })
}

/// Loads the view of a session, if it exists.
pub(crate) async fn find_view(store: &dyn Store, session: SessionId) -> Result<Option<JournalView>> {
    match load_view(store, session, None).await {
        Err(RuntimeError::SessionNotFound { .. }) => Ok(None),
        view => view.map(Some),
    }
}

/// Returns how a session was created, from its first record.
pub(crate) async fn creation_of(store: &dyn Store, session: SessionId) -> Result<Arc<SessionCreated>> {
    let first = read_records(store, session, Position::START, Some(Position::START.next())).await?;
    match first.into_iter().next().map(|record| record.body) {
        Some(RecordBody::SessionCreated(created)) => Ok(created),
        _ => Err(RuntimeError::SessionNotFound { session }),
    }
}

/// Returns a session and those that it is a sub-agent of, the outermost first.
pub(crate) async fn callers_of(store: &dyn Store, session: SessionId) -> Result<Vec<SessionId>> {
    let (mut line, mut origin) = (vec![session], creation_of(store, session).await?.origin.clone());
    while let Origin::Call { session: caller, .. } = origin {
        if line.contains(&caller) {
            break;
        }
        origin = match creation_of(store, caller).await {
            // It was removed.
            Err(RuntimeError::SessionNotFound { .. }) => break,
            created => created?.origin.clone(),
        };
        line.push(caller);
    }
    line.reverse();
    Ok(line)
}

/// A view, and the cut of the snapshot that it was loaded from.
pub(super) struct LoadedView {
    pub(super) view: JournalView,
    pub(super) snapshot: Option<Position>,
}

/// Loads the view of a session, see [`load_view`].
pub(super) async fn load(store: &dyn Store, session: SessionId, at: Option<Position>) -> Result<LoadedView> {
    let line = load_line(store, session, at, Snapshots::Used).await?;
    let of_session = |(view, _): &&(JournalView, Position)| view.session_id() == session;
    let snapshot = line.base.as_ref().filter(of_session).map(|(_, cut)| *cut);
    Ok(LoadedView { view: line.fold(|_| {})?, snapshot })
}

/// Folds the view of a session at its head or at a cut from all of its records. Snapshots are ignored.
pub async fn fold_view(store: &dyn Store, session: SessionId, at: Option<Position>) -> Result<JournalView> {
    load_line(store, session, at, Snapshots::Ignored).await?.fold(|_| {})
}

/// Whether snapshots replace the records before them.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Snapshots {
    Used,
    Ignored,
}

/// The records of a session and of its ancestors by fork, the eldest last.
pub(super) struct Line {
    session: SessionId,
    records: Vec<Vec<Record>>,
    /// The view before these records, and the cut of the snapshot that it was loaded from.
    base: Option<(JournalView, Position)>,
}

impl Line {
    /// Folds the view of the session. `each` receives the view at every cut before it, including those before
    /// the fork.
    pub(super) fn fold(&self, mut each: impl FnMut(&JournalView)) -> Result<JournalView> {
        let mut view = self.base.as_ref().map(|(view, _)| view.clone());
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
    snapshots: Snapshots,
) -> Result<Line> {
    let mut line = Line { session, records: Vec::new(), base: None };
    let mut seen = HashSet::new();
    let (mut session, mut at) = (session, at);
    loop {
        if !seen.insert(session) {
            return Err(RuntimeError::CircularFork { session });
        }
        if snapshots == Snapshots::Used {
            line.base = opened_from_snapshot(store, session, at).await;
        }
        if line.base.is_some() {
            return Ok(line);
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

/// Loads the view of a session from its snapshot and the records after it, and returns it with the cut of the
/// snapshot. Returns `None` if there is no usable snapshot, so that all records are folded.
async fn opened_from_snapshot(
    store: &dyn Store,
    session: SessionId,
    at: Option<Position>,
) -> Option<(JournalView, Position)> {
    let ignored = |reason: &str, error: Option<&(dyn std::error::Error + 'static)>| {
        tracing::warn!(%session, reason, error, "the snapshot is ignored, and the whole journal is read");
        None
    };
    let saved = match at {
        Some(at) => store.snapshot_until(session, at).await,
        None => store.snapshot(session).await,
    };
    let saved = match saved {
        Ok(saved) => saved?,
        Err(error) => return ignored("it cannot be read", Some(&error)),
    };
    let cut = saved.position;
    let view = match JournalView::decode_snapshot(saved.bytes) {
        Ok(view) => view,
        Err(error) => return ignored("it cannot be decoded", Some(&error)),
    };
    if view.session_id() != session || view.head() != cut {
        return ignored("it is that of another session or another cut", None);
    }
    // Errors of records are returned when all of them are read.
    let records = read_records(store, session, cut, at).await.ok()?;
    if records.is_empty() && store.head(session).await.ok()? < cut {
        return ignored("the journal ends before it", None);
    }
    match view.fold_after(&records, |_| {}) {
        Ok(view) => Some((view, cut)),
        // The session was rewound to a cut before the snapshot. The next snapshot follows soon.
        Err(FoldError { problem: FoldProblem::NeedsPrefix { .. }, .. }) => None,
        Err(error) => ignored("the records after it do not fit", Some(&error)),
    }
}

/// Result of checking the snapshot of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SnapshotState {
    /// There is no snapshot.
    Absent,
    /// The snapshot agrees with the records.
    Sound,
    /// The snapshot is ignored when the session is opened, for this reason.
    Unusable(String),
    /// The bytes of the snapshot were changed. It is ignored when the session is opened.
    Damaged,
    /// The snapshot differs from the records in this part.
    Wrong(&'static str),
}

/// Compares the snapshot of a session with the fold of all records before it.
pub async fn check_snapshot(store: &dyn Store, session: SessionId) -> Result<SnapshotState> {
    let saved = match store.snapshot(session).await {
        Ok(Some(saved)) => saved,
        Ok(None) => return Ok(SnapshotState::Absent),
        Err(StoreError::DamagedSnapshot { .. }) => return Ok(SnapshotState::Damaged),
        Err(error) => return Err(error.into()),
    };
    let cut = saved.position;
    let view = match JournalView::decode_snapshot(saved.bytes) {
        Ok(view) => view,
        Err(error) => return Ok(SnapshotState::Unusable(error.to_string())),
    };
    let folded = fold_view(store, session, Some(cut)).await?;
    Ok(match view.difference(&folded) {
        Ok(None) => SnapshotState::Sound,
        Ok(Some(part)) => SnapshotState::Wrong(part),
        Err(error) => SnapshotState::Unusable(error.to_string()),
    })
}

/// Maps an unknown session of a store to [`RuntimeError::SessionNotFound`].
pub(super) fn not_found(error: StoreError) -> RuntimeError {
    match error {
        StoreError::NotFound { session } => RuntimeError::SessionNotFound { session },
        other => other.into(),
    }
}
