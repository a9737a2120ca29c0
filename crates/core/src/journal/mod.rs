//! The journal: everything that happens in a session, in order.
//!
//! A session has one journal. It only grows, by [batches](Batch) that are appended atomically; a [`Record`]
//! in it never changes. Everything else, such as the session's state, the transcript, checkpoints and costs,
//! is a view: a pure function of records (see [`crate::view`]). A rewind is a record too
//! ([`SessionRewound`]), so nothing is ever deleted.

mod batch;
mod codec;
mod inbox;
mod isolation;
mod large;
mod lifecycle;
mod name;
mod position;
mod queue_entry;
mod record;
mod redacted;
mod stop;
mod summary;
mod tag;

pub use batch::Batch;
pub use codec::{DecodeError, DecodeProblem, EncodeError, EncodedRecord};
pub use inbox::{InboxId, InboxItem, InboxKind};
pub use isolation::{ApplyFinished, ApplyStarted, WorkspaceIsolated};
pub use lifecycle::{
    Decision, Note, ObservationCause, Origin, PauseReason, PauseResolved, SessionCreated, SessionPaused,
    SessionRewound, WorkspaceObserved,
};
pub use name::{NameRefused, SessionName};
pub use position::{Branch, Point, Position};
pub use queue_entry::QueueEntry;
pub(crate) use record::SortedFields;
pub use record::{Record, RecordBody};
pub use redacted::{ObjectRedacted, RecordsRedacted};
pub use stop::{SessionStopped, StopReason};
pub use summary::{JournalState, SessionFailure, SessionSummary};
pub use tag::{TagChange, TagRefused};

pub use crate::payload::{
    AfterFailure, ApprovalSubject, BudgetCharged, CallChanges, CallFinished, CallStarted, CallVerdict,
    CarriedCall, CarriedEvaluation, CarriedObject, ChangeCounts, ChangeKind, ChangedPath, CoveredDigests,
    Effect, EvaluationFailure, EvaluationFinished, EvaluationOutcome, EvaluationResumed, EvaluationStarted,
    FileContent, Finish, IdempotencyKey, InnerMessage, InvalidSignalName, LargeRecord, OmittedFile,
    ProcessStarted, ProgramStarted, Provenance, ProviderSidecar, Recovery, RequestFailed, RequestFinished,
    RequestStarted, ResourceChanged, Role, StepFinished, TaskFinished, TurnFinished, Wait, WorkspaceRevision,
    WorkspaceRoot,
};
pub use crate::session::{MAX_TURN, SequenceError, inner_message_append};
pub(crate) use crate::session::{MessageSlot, place_after, stands_at};
