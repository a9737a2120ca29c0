//! Records: the entries of a journal.
//!
//! A record states that something happened, and never changes once it is appended. The set of kinds is small
//! on purpose: a kind is added only when a view needs it.

use std::sync::Arc;

use super::Position;
use super::isolation::{ApplyFinished, ApplyStarted, WorkspaceIsolated};
use super::lifecycle::{
    Note, PauseResolved, SessionCreated, SessionPaused, SessionRewound, WorkspaceObserved,
};
use super::redacted::RecordsRedacted;
use super::stop::SessionStopped;
use crate::extra::Extra;
use crate::payload::InnerMessage;
use crate::payload::ResourceChanged;
use crate::payload::{
    BudgetCharged, CallFinished, CallStarted, ProcessStarted, RequestStarted, StepFinished,
};
use crate::payload::{EvaluationFinished, EvaluationResumed, EvaluationStarted, TurnFinished};
use crate::payload::{ProgramStarted, TaskFinished};
use crate::payload::{RequestFailed, RequestFinished};
use crate::session::{Change, SessionError, Slice, SliceOp, SlicePolicy, StoredChange};
use crate::time::Timestamp;

/// An event at its position in the journal.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// Position in the journal.
    pub position: Position,
    /// When it was recorded.
    pub at: Timestamp,
    /// Kind and payload.
    pub body: RecordBody,
    /// Fields that this version does not know.
    pub extra: Extra,
}

impl Record {
    /// Creates a record without unknown fields.
    pub fn new(position: Position, at: Timestamp, body: impl Into<RecordBody>) -> Self {
        Self { position, at, body: body.into(), extra: Extra::default() }
    }
}

/// A structure whose fields are sorted for redactions.
pub(crate) trait SortedFields {}

const fn require_sorted<T: SortedFields>() {}

/// Declares the kinds of records: the enum, their names, and a conversion from each.
macro_rules! record_kinds {
    ($($(#[$doc:meta])* $variant:ident($payload:ty) = $name:literal, version $version:literal;)*) => {
        /// Kind and payload of a record. The payloads are shared, so that views keep them without copying.
        #[derive(Debug, Clone, PartialEq)]
        #[non_exhaustive]
        pub enum RecordBody {
            $($(#[$doc])* $variant(Arc<$payload>),)*
        }

        impl RecordBody {
            /// The kinds of records, each with the version that this program writes.
            pub const KINDS: &[(&str, u32)] = &[$(($name, $version)),*];

            /// The stored name of the kind.
            pub fn kind(&self) -> &'static str {
                match self { $(Self::$variant(_) => $name,)* }
            }

            pub(super) fn to_data(&self) -> Result<Box<serde_json::value::RawValue>, serde_json::Error> {
                match self { $(Self::$variant(payload) => serde_json::value::to_raw_value(payload),)* }
            }

            /// Appends the payload as JSON.
            pub(super) fn write_data(&self, text: &mut Vec<u8>) -> Result<(), serde_json::Error> {
                match self { $(Self::$variant(payload) => serde_json::to_writer(text, payload),)* }
            }

            /// Decodes the payload of a record of this kind in its newest version; `None` if there is no such
            /// kind.
            pub(super) fn from_data(kind: &str, data: &str) -> Option<Result<Self, serde_json::Error>> {
                match kind {
                    $($name => Some(serde_json::from_str(data).map(Self::$variant)),)*
                    _ => None,
                }
            }
        }

        $(const _: () = require_sorted::<$payload>();)*

        $(impl From<$payload> for RecordBody {
            fn from(payload: $payload) -> Self {
                Self::$variant(Arc::new(payload))
            }
        })*
    };
}

record_kinds! {
    /// The session was created. Always the first record, and only the first.
    SessionCreated(SessionCreated) = "session_created", version 1;
    /// An evaluation starts.
    EvaluationStarted(EvaluationStarted) = "evaluation_started", version 1;
    /// An evaluation is resumed.
    EvaluationResumed(EvaluationResumed) = "evaluation_resumed", version 1;
    /// A request is about to be sent to a model.
    RequestStarted(RequestStarted) = "request_started", version 1;
    /// A request was answered.
    RequestFinished(RequestFinished) = "request_finished", version 1;
    /// An attempt at a request failed.
    RequestFailed(RequestFailed) = "request_failed", version 1;
    /// A message was added to the transcript.
    MessageAppended(InnerMessage) = "message_appended", version 1;
    /// A call is about to run.
    CallStarted(CallStarted) = "call_started", version 1;
    /// An external step of a call is done.
    StepFinished(StepFinished) = "step_finished", version 1;
    /// A call is about to start a process.
    ProcessStarted(ProcessStarted) = "process_started", version 1;
    /// A slice changed.
    SliceChanged(StoredChange) = "slice_changed", version 1;
    /// A snapshotable resource changed.
    ResourceChanged(ResourceChanged) = "resource_changed", version 1;
    /// A call has ended.
    CallFinished(CallFinished) = "call_finished", version 1;
    /// Costs were charged.
    BudgetCharged(BudgetCharged) = "budget_charged", version 1;
    /// The session is rewound.
    Rewound(SessionRewound) = "rewound", version 1;
    /// The files were captured outside of any call.
    WorkspaceObserved(WorkspaceObserved) = "workspace_observed", version 1;
    /// The session is paused until a decision is made.
    Paused(SessionPaused) = "paused", version 1;
    /// A decision about a pause was made.
    Resolved(PauseResolved) = "resolved", version 1;
    /// The session is no longer driven, before the evaluation ended or on a request from outside.
    SessionStopped(SessionStopped) = "session_stopped", version 1;
    /// An evaluation has ended.
    EvaluationFinished(EvaluationFinished) = "evaluation_finished", version 1;
    /// A program is about to run.
    ProgramStarted(ProgramStarted) = "program_started", version 1;
    /// A task of a program is done.
    TaskFinished(TaskFinished) = "task_finished", version 1;
    /// A turn of an agent that answers with programs has ended.
    TurnFinished(TurnFinished) = "turn_finished", version 1;
    /// A value was removed from records before this one, or from objects.
    Redacted(RecordsRedacted) = "redacted", version 1;
    /// The session works in a copy of a project.
    WorkspaceIsolated(WorkspaceIsolated) = "workspace_isolated", version 1;
    /// The changes of the session are about to be written to a directory.
    ApplyStarted(ApplyStarted) = "apply_started", version 1;
    /// The changes of the session are in a directory.
    ApplyFinished(ApplyFinished) = "apply_finished", version 1;
    /// Information that is recorded although no view needs it.
    Note(Note) = "note", version 1;
}

impl RecordBody {
    /// Returns the records that journal a change of a slice: messages for the transcript, none for a cache,
    /// which can be recomputed, and the change itself for all other slices. Fails for a transcript that does
    /// not merely grow, because its journal could not be folded.
    pub fn of_change(change: &Change) -> Result<Vec<Self>, SessionError> {
        let records_of = |messages: &[Arc<InnerMessage>]| {
            messages.iter().map(|message| Self::MessageAppended(message.clone())).collect()
        };
        Ok(match change.op::<InnerMessage>() {
            Some(SliceOp::Append(message)) => records_of(std::slice::from_ref(message)),
            Some(SliceOp::Extend(messages)) => records_of(messages),
            Some(SliceOp::Patch { remove, append }) if remove.is_empty() => records_of(append),
            Some(_) => return Err(SessionError::JournalOnlyGrows { slice: InnerMessage::NAME.to_owned() }),
            None if change.policy() == SlicePolicy::Cache => Vec::new(),
            None => vec![Self::SliceChanged(change.encode()?)],
        })
    }
}
