//! Finding the records of one call.
//!
//! A visible call is found through the view, and only the records around it are read. A call before a rewind
//! is no longer part of the view, so all records of the session are read for it.

use backstitch_runtime::{RuntimeError, find_call, read_records};

use crate::id::{CallId, SessionId};
use crate::journal::{Origin, Position, Record, RecordBody};
use crate::ports::Store;
use crate::view::JournalView;

/// How many records are read at a time in the search for the message of a call.
const PAGE: u64 = 256;

/// The records of a journal from the message of a call to its end. Records of other calls may be among them.
pub(super) struct CallSpan {
    pub(super) session: SessionId,
    pub(super) call: CallId,
    pub(super) records: Vec<Record>,
}

/// Finds a call of a session by the beginning or the end of its id, also one before a rewind.
pub(super) async fn find_span(
    store: &dyn Store,
    view: &JournalView,
    name: &str,
) -> Result<CallSpan, RuntimeError> {
    match find_call(view, name) {
        Ok(call) => visible_span(store, view, call).await,
        Err(error) => match hidden_span(store, view.session_id(), name).await? {
            Some(span) => Ok(span),
            None => Err(error),
        },
    }
}

async fn visible_span(store: &dyn Store, view: &JournalView, call: CallId) -> Result<CallSpan, RuntimeError> {
    let known = view.call(call);
    let intent = known.and_then(|known| known.intent.as_ref()).map(|intent| intent.point);
    let (mut session, mut before) = match intent {
        Some(point) => (point.session, point.position),
        None => (view.session_id(), view.head()),
    };
    // The message comes before the start of the call; in a fork, possibly in the journal of an ancestor.
    let message = loop {
        if let Some(found) = message_before(store, session, before, call).await? {
            break Some(found);
        }
        match origin(store, session).await? {
            Origin::Fork { session: parent, position } => (session, before) = (parent, position),
            Origin::Root | Origin::Call { .. } => break None,
        }
    };
    let from = message.or(intent.map(|point| point.position)).unwrap_or(Position::START);
    let finished = known.and_then(|known| known.finished.as_ref()).map(|finished| finished.point);
    let end = finished.filter(|point| point.session == session).map(|point| point.position.next());
    let mut records = read_records(store, session, from, end).await?;
    // A call that was interrupted before a fork continues in the fork.
    if let Some(point) = intent.filter(|point| point.session != session) {
        let end = finished.map(|finished| finished.position.next());
        records.extend(read_records(store, point.session, Position::START, end).await?);
    }
    Ok(CallSpan { session, call, records })
}

/// Searches backwards for the message that makes a call.
async fn message_before(
    store: &dyn Store,
    session: SessionId,
    before: Position,
    call: CallId,
) -> Result<Option<Position>, RuntimeError> {
    let mut end = before.number();
    while end > 0 {
        let start = end.saturating_sub(PAGE);
        let records = read_records(store, session, Position::new(start), Some(Position::new(end))).await?;
        if let Some(found) = records.iter().rev().find(|record| asked(record) == Some(call)) {
            return Ok(Some(found.position));
        }
        end = start;
    }
    Ok(None)
}

async fn origin(store: &dyn Store, session: SessionId) -> Result<Origin, RuntimeError> {
    let first = read_records(store, session, Position::START, Some(Position::new(1))).await?;
    Ok(match first.first().map(|record| &record.body) {
        Some(RecordBody::SessionCreated(created)) => created.origin.clone(),
        _ => Origin::Root,
    })
}

/// Searches all records of a session for a call that no view shows any more.
async fn hidden_span(
    store: &dyn Store,
    session: SessionId,
    name: &str,
) -> Result<Option<CallSpan>, RuntimeError> {
    let name = name.to_ascii_lowercase();
    let records = read_records(store, session, Position::START, None).await?;
    let mut matching: Vec<CallId> = records.iter().filter_map(asked).collect();
    matching.retain(|call| {
        let id = call.to_string();
        id.starts_with(&name) || id.ends_with(&name)
    });
    matching.sort_unstable();
    matching.dedup();
    let [call] = matching[..] else { return Ok(None) };
    let first = records.iter().position(|record| asked(record) == Some(call)).unwrap_or(0);
    Ok(Some(CallSpan { session, call, records: records.into_iter().skip(first).collect() }))
}

/// Returns the call that the message of a record makes.
fn asked(record: &Record) -> Option<CallId> {
    let RecordBody::MessageAppended(message) = &record.body else { return None };
    message.message.option_call().map(|call| call.invocation_id)
}
