//! Calls: the request, the intent and the outcome.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::recorded::JournalEntry;
use crate::id::{CallId, EvaluationId, SessionId};
use crate::journal::{
    CallFinished, CallStarted, CallVerdict, CarriedCall, Decision, Effect, PauseResolved, Point, Position,
    ProcessStarted, WorkspaceRoot,
};
use crate::message::OptionResult;
use crate::object::ObjectId;
use crate::time::Timestamp;

/// Status of a call. It is never stored: it follows from the presence of the result.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CallStatus {
    /// The call has no result yet.
    #[default]
    Pending,
    /// The call has a result.
    Completed,
    /// The call has an error.
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
    /// Name of the option.
    pub name: String,
    /// Latest intent.
    pub intent: Option<JournalEntry<CallStarted>>,
    /// Outcome of the latest intent.
    pub finished: Option<JournalEntry<CallFinished>>,
    /// The finished external steps, by name. Values are shared, so that a copy of the view does not copy
    /// them.
    pub steps: imbl::OrdMap<Arc<str>, Arc<Value>>,
    /// Latest decision about the call since its latest intent.
    pub decision: Option<Arc<PauseResolved>>,
    /// The decision of a person that lets the call run, before any of its intents. A later question about the call
    /// ends it.
    pub approval: Option<Arc<PauseResolved>>,
    /// The decision since its latest intent by which a person edited its arguments.
    pub edit: Option<Arc<PauseResolved>>,
    /// Whether a record shows that the files were restored to the state before the latest intent. They hold
    /// no changes of the call, and later changes are not its own.
    pub files_restored: bool,
    /// The processes that it started and that are not known to have ended.
    pub processes: imbl::Vector<Arc<ProcessStarted>>,
    /// Its provenance, if it was pending in an adopted conversation.
    pub adopted: Option<Arc<CarriedCall>>,
    /// Status of its result message: completed or failed.
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
            approval: None,
            edit: None,
            files_restored: false,
            processes: imbl::Vector::new(),
            adopted: None,
            result: None,
        }
    }

    /// Returns the status of the call.
    pub fn status(&self) -> CallStatus {
        let finished = self.finished.as_ref().map(|finished| match finished.record.outcome {
            CallVerdict::Succeeded => CallStatus::Completed,
            CallVerdict::Failed => CallStatus::Failed,
        });
        self.result.or(finished).unwrap_or(CallStatus::Pending)
    }

    /// Returns whether the call was started and has no outcome, so that it may have had an effect.
    pub fn is_open(&self) -> bool {
        self.status() == CallStatus::Pending && self.intent.is_some()
    }

    /// Returns whether the call has no result and may have had an effect: it was started here, or it was
    /// pending in an adopted conversation and may have been started elsewhere.
    pub fn may_have_run(&self) -> bool {
        self.status() == CallStatus::Pending && (self.intent.is_some() || self.adopted.is_some())
    }

    /// Returns the latest known intent, recorded here or elsewhere.
    pub fn latest_intent(&self) -> Option<&Arc<CallStarted>> {
        let here = self.intent.as_ref().map(|intent| &intent.record);
        here.or_else(|| self.adopted.as_ref()?.started.as_ref())
    }

    /// Returns the arguments that a person gave the call since its latest intent, if one edited them.
    pub fn edited_arguments(&self) -> Option<&Map<String, Value>> {
        match &self.edit.as_ref()?.decision {
            Decision::Edit { arguments } => Some(arguments),
            _ => None,
        }
    }

    /// Returns the effect class of the latest known intent.
    pub fn recorded_effect(&self) -> Option<Effect> {
        self.latest_intent().map(|intent| intent.effect)
    }

    /// Returns the child session of the call, if the option is a sub-agent.
    pub fn session(&self) -> Option<SessionId> {
        self.intent.as_ref().and_then(|intent| intent.record.session)
    }

    /// Returns the boundaries of the call, if it was started.
    pub fn checkpoint(&self) -> Option<Checkpoint> {
        let intent = self.intent.as_ref()?;
        let Point { session, position } = intent.point;
        let (root, coverage) = (intent.record.root, intent.record.coverage);
        let finished = self.finished.as_ref();
        Some(Checkpoint {
            call_id: self.call_id,
            tool_name: self.name.clone(),
            attempt: intent.record.attempt,
            before: Boundary { session, position, root, coverage },
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

/// A boundary of a call: the journal up to the cut defines state and transcript, the root defines the files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Boundary {
    /// The session that owns the journal. In a fork, the boundaries of calls before the fork are those of its
    /// parent.
    pub session: SessionId,
    /// Cut in the journal.
    pub position: Position,
    /// The workspace, for calls that may write.
    pub root: Option<WorkspaceRoot>,
    /// The object that lists the paths that the root does not cover; none if everything coverable is covered.
    pub coverage: Option<ObjectId>,
}

/// The two boundaries of a call. Its size does not depend on the session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// The call.
    pub call_id: CallId,
    /// Name of the option.
    pub tool_name: String,
    /// Number of the attempt.
    pub attempt: u32,
    /// Boundary before the call.
    pub before: Boundary,
    /// Boundary after the call, if it has ended.
    pub after: Option<Boundary>,
    /// How far it has come.
    pub status: CallStatus,
    /// One-line summary of the result.
    pub result_summary: Option<String>,
    /// Duration of the call, in microseconds.
    pub elapsed_micros: Option<u64>,
    /// Time at which the outcome was recorded.
    pub recorded_at: Option<Timestamp>,
}
