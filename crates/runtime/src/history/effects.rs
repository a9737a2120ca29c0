//! Discarded calls that had an effect outside.
//!
//! A rewind does not undo the outside effects of calls. If a call becomes pending again and its effect may
//! have happened, it is not repeated without a decision: the session waits, and offers the recorded result.

use std::collections::HashMap;

use backstitch_core::id::{CallId, SessionId};
use backstitch_core::journal::{
    Effect, Origin, PauseReason, Point, Position, Record, RecordBody, SessionPaused,
};
use backstitch_core::ports::Store;
use backstitch_core::view::{CallStatus, JournalView};

use crate::error::RuntimeError;
use crate::live::read_records;
use crate::observed::is_observed;

/// A call with an effect outside, on any branch of a journal.
#[derive(Debug, Clone)]
struct PriorEffect {
    name: String,
    result: Option<Point>,
}

/// Returns the pauses of calls that are pending at a cut and have been started on any branch.
pub(super) async fn pauses_for(
    store: &dyn Store,
    prefix: &JournalView,
    session: SessionId,
) -> Result<Vec<RecordBody>, RuntimeError> {
    let pending: Vec<CallId> =
        prefix.calls().filter(|call| call.status() == CallStatus::Pending).map(|call| call.call_id).collect();
    if pending.is_empty() {
        return Ok(Vec::new());
    }
    let happened = happened_in(store, session).await?;
    let waiting: Vec<_> = prefix.pauses().filter_map(|pause| pause.call_id).collect();
    let pauses = pending
        .into_iter()
        .filter(|call| !waiting.contains(call))
        .filter_map(|call| Some(pause(call, happened.get(&call)?)));
    Ok(pauses.collect())
}

/// Returns the pauses of calls that are about to be made and have been started before on any branch.
pub(crate) async fn pauses_of(
    store: &dyn Store,
    session: SessionId,
    calls: impl IntoIterator<Item = CallId>,
) -> Result<Vec<RecordBody>, RuntimeError> {
    let happened = happened_in(store, session).await?;
    let pauses = calls.into_iter().filter_map(|call| Some(pause(call, happened.get(&call)?)));
    Ok(pauses.collect())
}

fn pause(call: CallId, known: &PriorEffect) -> RecordBody {
    let paused = SessionPaused::new(PauseReason::EffectUnknown).of_call(call).with_detail(known.name.clone());
    SessionPaused { offer: known.result, ..paused }.into()
}

/// Returns the calls with an effect outside that were ever started, in this session and in those that it is a
/// fork of.
async fn happened_in(
    store: &dyn Store,
    session: SessionId,
) -> Result<HashMap<CallId, PriorEffect>, RuntimeError> {
    let mut happened = HashMap::new();
    let mut next = Some(session);
    let mut seen = std::collections::HashSet::new();
    while let Some(session) = next.filter(|session| seen.insert(*session)) {
        let records = read_records(store, session, Position::START, None).await?;
        next = match records.first().map(|record| &record.body) {
            Some(RecordBody::SessionCreated(created)) => match created.origin {
                Origin::Fork { session, .. } => Some(session),
                _ => None,
            },
            _ => None,
        };
        collect(session, &records, &mut happened);
    }
    Ok(happened)
}

fn collect(session: SessionId, records: &[Record], happened: &mut HashMap<CallId, PriorEffect>) {
    for record in records {
        match &record.body {
            RecordBody::CallStarted(started)
                if matches!(started.effect, Effect::Idempotent | Effect::External)
                    && !is_observed(started) =>
            {
                let known = PriorEffect { name: started.name.clone(), result: None };
                happened.entry(started.call_id).or_insert(known);
            }
            RecordBody::MessageAppended(message) => {
                if let Some(call) = message.tool_call_id()
                    && let Some(known) = happened.get_mut(&call)
                {
                    known.result = Some(Point { session, position: record.position });
                }
            }
            _ => {}
        }
    }
}
