//! Resolution of points to cuts of a journal.
//!
//! A cut of the journal determines state and conversation. The root of the files at the cut belongs to it.

use std::collections::HashSet;

use backstitch_core::id::{CallId, SessionId};
use backstitch_core::journal::{Position, Record, RecordBody, Role, WorkspaceRevision};
use backstitch_core::ports::Store;
use backstitch_core::view::{Boundary, Checkpoint, JournalView};

use crate::error::{Result, RuntimeError};
use crate::live::{load_view, read_records};
use crate::point::{PointSpec, is_call_name};

/// How many records are read at a time in the search for a point.
const PAGE: usize = 500;

/// A point of a session, resolved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResolvedPoint {
    /// The session whose journal is cut. For a fork this may be its parent.
    pub session: SessionId,
    /// The cut.
    pub cut: Position,
    /// The files at the cut, as far as they are known.
    pub files: Option<WorkspaceRevision>,
}

/// Resolves a point. Fails with [`RuntimeError::NoSuchPoint`] if it does not exist.
pub async fn locate(store: &dyn Store, view: &JournalView, point: &PointSpec) -> Result<ResolvedPoint> {
    Ok(locate_with_view(store, view, point).await?.0)
}

/// Resolves a point as [`locate`] does, and returns also the view at its cut if it had to be loaded for that.
pub async fn locate_with_view(
    store: &dyn Store,
    view: &JournalView,
    point: &PointSpec,
) -> Result<(ResolvedPoint, Option<JournalView>)> {
    let session = view.session_id();
    let missing = |reason: String| RuntimeError::NoSuchPoint { point: point.to_string(), reason };
    let at = |cut| ResolvedPoint { session, cut, files: None };
    let place = match point {
        PointSpec::Head => ResolvedPoint { session, cut: view.head(), files: view.files() },
        PointSpec::Position(position) => {
            if *position == Position::START || *position > view.head() {
                let head = view.head();
                return Err(missing(format!("the session has positions 1 to {head}")));
            }
            at(*position)
        }
        PointSpec::Before(name) => of_boundary(checkpoint(view, name)?.before),
        PointSpec::After(name) => {
            let after = checkpoint(view, name)?.after;
            of_boundary(after.ok_or_else(|| missing("the call has not ended".to_owned()))?)
        }
        PointSpec::Start => at(start(store, view).await?),
        PointSpec::Turn(turn) => {
            let end = end_of_turn(store, view, *turn).await?;
            at(end.ok_or_else(|| {
                missing("the latest evaluation has no such turn in this session".to_owned())
            })?)
        }
        PointSpec::Rescue(position) => {
            let records = read_records(store, session, *position, Some(position.next())).await?;
            let files = records.first().and_then(rescue_of);
            let files = files.ok_or_else(|| missing("no files were kept there".to_owned()))?;
            ResolvedPoint { session, cut: view.head(), files: Some(files) }
        }
    };
    if place.files.is_some() || place.cut == view.head() && place.session == session {
        return Ok((place, None));
    }
    let then = load_view(store, place.session, Some(place.cut)).await?;
    Ok((ResolvedPoint { files: then.files(), ..place }, Some(then)))
}

fn of_boundary(boundary: Boundary) -> ResolvedPoint {
    ResolvedPoint {
        session: boundary.session,
        cut: boundary.position,
        files: WorkspaceRevision::of(boundary.root, boundary.coverage),
    }
}

/// Returns the boundaries of the only call whose id begins or ends with `name`.
fn checkpoint(view: &JournalView, name: &str) -> Result<Checkpoint> {
    let call = find_call(view, name)?;
    let known = view.call(call).and_then(|call| call.checkpoint());
    known.ok_or_else(|| RuntimeError::NoSuchPoint {
        point: name.to_owned(),
        reason: "the call was not started".to_owned(),
    })
}

/// Returns the only call whose id begins or ends with `name`.
pub fn find_call(view: &JournalView, name: &str) -> Result<CallId> {
    let missing =
        |reason: &str| RuntimeError::NoSuchPoint { point: name.to_owned(), reason: reason.to_owned() };
    if !is_call_name(name) {
        return Err(missing("give at least 4 characters of the beginning or the end of the call's id"));
    }
    let name = name.to_ascii_lowercase();
    let mut matching = view.calls().map(|call| call.call_id).filter(|id| {
        let id = id.to_string();
        // Ids begin with the time, so those of one turn begin alike, and differ at the end.
        id.starts_with(&name) || id.ends_with(&name)
    });
    match (matching.next(), matching.next()) {
        (Some(call), None) => Ok(call),
        (Some(_), Some(_)) => Err(missing("several calls have such an id: type more of it")),
        (None, _) => Err(missing("there is no such call")),
    }
}

/// Returns the cut before the first evaluation.
async fn start(store: &dyn Store, view: &JournalView) -> Result<Position> {
    let mut from = Position::START;
    while from < view.head() {
        let records = read_records(store, view.session_id(), from, Some(from.after(PAGE))).await?;
        let asked = records.iter().find(|record| matches!(record.body, RecordBody::EvaluationStarted(_)));
        if let Some(record) = asked {
            return Ok(record.position);
        }
        from = from.after(PAGE);
    }
    Ok(view.head())
}

/// Returns the cut after all records of a turn of the latest evaluation. The journal is read from its end, since
/// people mostly name late turns.
async fn end_of_turn(store: &dyn Store, view: &JournalView, turn: u64) -> Result<Option<Position>> {
    let Some(evaluation) = view.latest_evaluation().filter(|_| turn > 0) else { return Ok(None) };
    let (evaluation, first) = (evaluation.evaluation_id, evaluation.started);
    let messages = view.messages_of(evaluation)?;
    let of_turn = messages.iter().filter(|message| message.turn == turn);
    let calls: HashSet<CallId> =
        of_turn.filter_map(|message| message.message.option_call()).map(|call| call.invocation_id).collect();
    let belongs = |record: &Record| match &record.body {
        RecordBody::MessageAppended(message) => {
            message.evaluation_id == evaluation && message.turn == turn && message.role() != Role::User
        }
        RecordBody::CallFinished(finished) => calls.contains(&finished.call_id),
        _ => false,
    };
    let begin = if first.session == view.session_id() { first.position } else { Position::START };
    let visible = view.lineage().visible(view.head());
    let mut end = view.head().number();
    while end > begin.number() {
        let start = end.saturating_sub(PAGE as u64).max(begin.number());
        let (from, to) = (Position::new(start), Position::new(end));
        let records = read_records(store, view.session_id(), from, Some(to)).await?;
        let is_visible = |record: &&Record| visible.iter().any(|range| range.contains(&record.position));
        if let Some(last) = records.iter().rev().filter(is_visible).find(|record| belongs(record)) {
            return Ok(Some(last.position.next()));
        }
        end = start;
    }
    Ok(None)
}

/// Returns the files that a record saved before they were restored.
fn rescue_of(record: &Record) -> Option<WorkspaceRevision> {
    match &record.body {
        RecordBody::CallFinished(finished) => WorkspaceRevision::of(finished.rescue, finished.coverage),
        RecordBody::Rewound(rewound) => WorkspaceRevision::of(rewound.rescue, rewound.coverage),
        RecordBody::WorkspaceObserved(observed) => {
            WorkspaceRevision::of(Some(observed.root), observed.coverage)
        }
        _ => None,
    }
}
