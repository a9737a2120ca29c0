//! Changes of history that a caller outside asks for: rewinds, undos, forks.
//!
//! A note that names the call is durable before anything changes, and the record of a rewind names it too. The call
//! and its result follow as messages on the branch that is current afterwards. So a repeated request never changes
//! history a second time, also after a crash in between: a rewind that was recorded is completed, one that was not is
//! made, and for a fork, which this journal does not show, the request fails with an error that says so.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, PoisonError};

use backstitch_core::id::CallId;
use backstitch_core::journal::{Note, Position, RecordBody};
use backstitch_core::ports::BoxFuture;
use serde_json::{Map, Value, json};

use super::{OutsideCall, OutsideCalls, OutsideError, OutsideResult, UNDONE};
use crate::driver::NewCall;
use crate::error::{Result, RuntimeError};
use crate::fence::joined;
use crate::history::{RewindReport, RewindScope, effects_left_by};
use crate::live::{LiveSession, read_records};
use crate::point::PointSpec;

/// Topic of the note that names a change of history.
const TOPIC: &str = "outside";

/// A kind of change, by where it is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HistoryChangeKind {
    /// A rewind, or the undoing of one: a record of this session.
    Rewind,
    /// A fork: another session.
    Fork,
}

/// Changes history, and returns a value or the reason of a refusal.
type HistoryAct = Box<dyn FnOnce(HistoryChange) -> BoxFuture<'static, Result<Value, String>> + Send>;

/// A change that was begun, as its note has it.
#[derive(Debug, Clone)]
pub(super) struct BegunChange {
    /// `None` in notes of earlier versions.
    name: Option<String>,
    arguments: Map<String, Value>,
}

impl BegunChange {
    /// Whether a call asks for the same change.
    pub(super) fn is_of(&self, call: &OutsideCall) -> bool {
        self.name.as_ref().is_none_or(|name| *name == call.name) && self.arguments == call.arguments
    }
}

/// What earlier processes have recorded about calls.
#[derive(Debug, Clone, Default)]
pub(super) struct KnownCalls {
    /// Calls that a rewind has undone, with their messages.
    pub(super) undone: HashSet<CallId>,
    /// Calls that have ended once. One that is pending nevertheless was undone.
    pub(super) ended: HashSet<CallId>,
    /// Changes of history that were begun.
    pub(super) begun: HashMap<CallId, BegunChange>,
}

impl KnownCalls {
    /// Reads the journal of a session.
    pub(super) async fn read(live: &LiveSession) -> Result<Self> {
        let visible = visible_calls(live).await;
        let records = match read_records(&**live.store(), live.id(), Position::START, None).await {
            // A new session is stored with its first call.
            Err(RuntimeError::SessionNotFound { .. }) => return Ok(Self::default()),
            records => records?,
        };
        let mut known = Self::default();
        for record in records {
            match &record.body {
                RecordBody::MessageAppended(message) => {
                    let call = message.message.option_call().map(|call| call.invocation_id);
                    known.undone.extend(call.filter(|call| !visible.contains(call)));
                    known.ended.extend(message.message.option_result().map(|result| result.invocation_id));
                }
                RecordBody::Note(note) if note.topic == TOPIC => {
                    known.begun.extend(note.data.inline().and_then(begun_change));
                }
                _ => {}
            }
        }
        Ok(known)
    }
}

/// The session, for the one change of history that a call asks for.
pub struct HistoryChange {
    session: Arc<LiveSession>,
    call: CallId,
    /// The rewind of the same call, if an earlier process recorded it and did not get further.
    recorded: Option<RewindReport>,
}

impl HistoryChange {
    /// Rewinds to a point, like [`LiveSession::rewind`].
    pub fn rewind<'a>(
        &'a self,
        point: &'a PointSpec,
        reason: Option<String>,
    ) -> BoxFuture<'a, Result<RewindReport>> {
        Box::pin(async move {
            match &self.recorded {
                Some(report) => Ok(report.clone()),
                None => self.session.rewind_for(Some(self.call), point, reason, RewindScope::default()).await,
            }
        })
    }

    /// Undoes the latest rewind, like [`LiveSession::undo`].
    pub fn undo(&self) -> BoxFuture<'_, Result<RewindReport>> {
        Box::pin(async move {
            match &self.recorded {
                Some(report) => Ok(report.clone()),
                None => self.session.undo_for(Some(self.call), RewindScope::default()).await,
            }
        })
    }
}

impl OutsideCalls {
    /// Changes history with `act`, and records the call with its result: a value, or the reason of a refusal. Fails
    /// with [`OutsideError::Busy`] while calls run.
    pub async fn change_history<F, W>(
        self: &Arc<Self>,
        call: OutsideCall,
        kind: HistoryChangeKind,
        act: F,
    ) -> Result<OutsideResult, Arc<OutsideError>>
    where
        F: FnOnce(HistoryChange) -> W + Send + 'static,
        W: Future<Output = Result<Value, String>> + Send + 'static,
    {
        let act: HistoryAct = Box::new(|change| Box::pin(act(change)));
        let changed = self.tasks.spawn(self.clone().change(call, kind, act));
        let changed = joined(changed.await).unwrap_or_else(|| Err(RuntimeError::ShuttingDown.into()));
        changed.map_err(Arc::new)
    }

    fn change(
        self: Arc<Self>,
        call: OutsideCall,
        kind: HistoryChangeKind,
        act: HistoryAct,
    ) -> BoxFuture<'static, Result<OutsideResult, OutsideError>> {
        Box::pin(async move {
            let id = call.call_id;
            let busy = || OutsideError::Busy { count: self.running().max(1) };
            let _alone = self.gate.try_write().map_err(|_| busy())?;
            if let Some(known) = self.recorded_result(id, &call).await? {
                return Ok(known);
            }
            let recorded = self.begin_change(&call, kind).await?;
            let before = visible_calls(self.session()).await;
            let result = act(HistoryChange { session: self.session().clone(), call: id, recorded }).await;
            let after = visible_calls(self.session()).await;
            let undone = before.difference(&after).copied();
            self.undone.lock().unwrap_or_else(PoisonError::into_inner).extend(undone);
            self.driver.end_outside_calls(|_| UNDONE).await?;
            let evaluation = self.evaluation().await?;
            let new =
                NewCall { id, foreign: call.id.as_deref(), name: &call.name, arguments: &call.arguments };
            let message = self.driver.record_outside(evaluation, new, &result).await?;
            Ok(OutsideResult { call: id, message, is_repeated: false })
        })
    }

    /// Records the note of a change. For one that was begun before, returns how far it came.
    async fn begin_change(
        &self,
        call: &OutsideCall,
        kind: HistoryChangeKind,
    ) -> Result<Option<RewindReport>, OutsideError> {
        let is_begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner).contains_key(&call.call_id);
        if is_begun {
            if kind == HistoryChangeKind::Fork {
                return Err(OutsideError::Interrupted { id: call.id.clone().unwrap_or_default() });
            }
            return Ok(self.recorded_rewind(call.call_id).await?);
        }
        // A session that has no call yet is stored with this.
        self.evaluation().await?;
        let note = Note::new(TOPIC, format!("{} was requested", call.name));
        let data = json!({ "call_id": call.call_id, "name": &call.name, "arguments": &call.arguments });
        self.session().record(vec![note.with_data(data).into()]).await?;
        let begun = BegunChange { name: Some(call.name.clone()), arguments: call.arguments.clone() };
        self.begun.lock().unwrap_or_else(PoisonError::into_inner).insert(call.call_id, begun);
        Ok(None)
    }

    /// Returns the rewind that a call has made.
    async fn recorded_rewind(&self, call: CallId) -> Result<Option<RewindReport>> {
        let live = self.session();
        live.flush().await?;
        let records = read_records(&**live.store(), live.id(), Position::START, None).await?;
        let made = records.iter().rev().find_map(|record| match &record.body {
            RecordBody::Rewound(rewound) if rewound.call_id == Some(call) => Some((record.position, rewound)),
            _ => None,
        });
        let Some((at, rewound)) = made else { return Ok(None) };
        let effects = effects_left_by(&**live.store(), live.id(), (at, rewound.to)).await?;
        Ok(Some(RewindReport::of_record(live.id(), (at, rewound), effects)))
    }
}

async fn visible_calls(live: &LiveSession) -> HashSet<CallId> {
    live.view().await.calls().map(|call| call.call_id).collect()
}

/// Reads the data of a note.
fn begun_change(data: &Value) -> Option<(CallId, BegunChange)> {
    let name = data.get("name").and_then(Value::as_str).map(str::to_owned);
    let arguments = data.get("arguments").and_then(Value::as_object).cloned().unwrap_or_default();
    Some((data.get("call_id")?.as_str()?.parse().ok()?, BegunChange { name, arguments }))
}
