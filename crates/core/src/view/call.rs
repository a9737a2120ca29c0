//! Calls: what was asked for, what was started, what came of it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::recorded::JournalEntry;
use crate::id::{CallId, EvaluationId, SessionId};
use crate::journal::{
    CallFinished, CallStarted, CallVerdict, CarriedCall, Effect, PauseResolved, Point, Position,
    ProcessStarted, WorkspaceRoot,
};
use crate::message::OptionResult;
use crate::object::ObjectId;
use crate::time::Timestamp;

/// How far a call has come. It is never stored: it follows from the presence of the result.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallStatus {
    /// There is no result yet.
    #[default]
    Pending,
    /// There is a result.
    Completed,
    /// There is an error.
    Failed,
}

impl CallStatus {
    pub(super) fn of(result: &OptionResult) -> Self {
        if result.is_error { Self::Failed } else { Self::Completed }
    }
}

/// A call of the journal.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// The call.
    pub call_id: CallId,
    /// The evaluation that it belongs to.
    pub evaluation_id: EvaluationId,
    /// The option.
    pub name: String,
    /// Its latest intent.
    pub intent: Option<JournalEntry<CallStarted>>,
    /// The outcome of that intent.
    pub finished: Option<JournalEntry<CallFinished>>,
    /// The outside sub-steps that are done, by name. Values are shared, so that a copy of the view copies none of them.
    pub steps: imbl::OrdMap<Arc<str>, Arc<Value>>,
    /// What was last decided about it, since its latest intent.
    pub decision: Option<Arc<PauseResolved>>,
    /// Whether the files were restored to what they were before its latest intent, and that was recorded since. Nothing of it is
    /// left in them, and what they hold now is not its doing.
    pub files_restored: bool,
    /// The processes that it started, as long as it is not known that they have ended.
    pub processes: imbl::Vector<Arc<ProcessStarted>>,
    /// What is known of it from elsewhere, when it was pending in the conversation that the session adopted.
    pub adopted: Option<Arc<CarriedCall>>,
    /// What its result message says: completed or failed.
    pub(super) result: Option<CallStatus>,
}

impl Call {
    pub(super) fn new(call_id: CallId, evaluation_id: EvaluationId, name: &str) -> Self {
        Self {
            call_id,
            evaluation_id,
            name: name.to_owned(),
            intent: None,
            finished: None,
            steps: imbl::OrdMap::new(),
            decision: None,
            files_restored: false,
            processes: imbl::Vector::new(),
            adopted: None,
            result: None,
        }
    }

    /// How far the call has come.
    pub fn status(&self) -> CallStatus {
        let finished = self.finished.as_ref().map(|finished| match finished.record.outcome {
            CallVerdict::Succeeded => CallStatus::Completed,
            CallVerdict::Failed => CallStatus::Failed,
        });
        self.result.or(finished).unwrap_or(CallStatus::Pending)
    }

    /// Whether the call was started and has no outcome: it may have had an effect.
    pub fn is_open(&self) -> bool {
        self.status() == CallStatus::Pending && self.intent.is_some()
    }

    /// Whether the call has no result and may have had an effect: it was started here, or it was pending in a conversation
    /// that was adopted, and nobody knows whether it was started elsewhere.
    pub fn may_have_run(&self) -> bool {
        self.status() == CallStatus::Pending && (self.intent.is_some() || self.adopted.is_some())
    }

    /// The latest intent that is known, recorded here or elsewhere.
    pub fn latest_intent(&self) -> Option<&Arc<CallStarted>> {
        let here = self.intent.as_ref().map(|intent| &intent.record);
        here.or_else(|| self.adopted.as_ref()?.started.as_ref())
    }

    /// What the call may have done to the world, as far as an intent says so.
    pub fn recorded_effect(&self) -> Option<Effect> {
        self.latest_intent().map(|intent| intent.effect)
    }

    /// The session that works for it, when the option is another agent.
    pub fn session(&self) -> Option<SessionId> {
        self.intent.as_ref().and_then(|intent| intent.record.session)
    }

    /// The boundaries of the call, once it was started.
    pub fn checkpoint(&self) -> Option<Checkpoint> {
        let intent = self.intent.as_ref()?;
        let (root, coverage) = (intent.record.root, intent.record.coverage);
        let finished = self.finished.as_ref();
        Some(Checkpoint {
            call_id: self.call_id,
            tool_name: self.name.clone(),
            attempt: intent.record.attempt,
            before: Boundary::at(intent.point, root, coverage),
            after: finished.map(|finished| {
                let Point { session, position } = finished.point;
                let (root, coverage) = match (finished.record.outcome, finished.record.root) {
                    (CallVerdict::Succeeded, Some(root)) => (Some(root), finished.record.coverage),
                    (CallVerdict::Succeeded, None) | (CallVerdict::Failed, _) => (root, coverage),
                };
                Boundary { session, position: position.next(), root, coverage }
            }),
            status: self.status(),
            result_summary: finished.and_then(|finished| finished.record.summary.clone()),
            elapsed_micros: finished.map(|finished| finished.record.elapsed_micros),
            recorded_at: finished.map(|finished| finished.at),
        })
    }
}

/// A tool boundary: the journal cut there gives state and transcript, the root gives the files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Boundary {
    /// The session whose journal is meant. In a fork, the boundaries of calls before the fork are those of its parent.
    pub session: SessionId,
    /// The cut.
    pub position: Position,
    /// The workspace, for calls that may write.
    pub root: Option<WorkspaceRoot>,
    /// The object that lists what the root does not cover; none when it covers all that can be.
    pub coverage: Option<ObjectId>,
}

impl Boundary {
    fn at(
        Point { session, position }: Point,
        root: Option<WorkspaceRoot>,
        coverage: Option<ObjectId>,
    ) -> Self {
        Self { session, position, root, coverage }
    }
}

/// The two boundaries of a call. It is constant in size, whatever the session holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Checkpoint {
    /// The call.
    pub call_id: CallId,
    /// The option.
    pub tool_name: String,
    /// Which attempt it is about.
    pub attempt: u32,
    /// Before the call.
    pub before: Boundary,
    /// After it, once it has ended.
    pub after: Option<Boundary>,
    /// How far it has come.
    pub status: CallStatus,
    /// A line about its result.
    pub result_summary: Option<String>,
    /// How long it took, in microseconds.
    pub elapsed_micros: Option<u64>,
    /// When its outcome was recorded.
    pub recorded_at: Option<Timestamp>,
}
