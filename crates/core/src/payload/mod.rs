//! Payloads of records that depend on neither the journal nor the session.
//!
//! Sessions hold messages and carry the provenance of their calls; journals record both. This module has the
//! types that the two share. They are public as part of [`journal`](crate::journal).

mod call;
mod changes;
mod effect;
mod evaluation;
mod finish;
mod inner_message;
pub(crate) mod large;
mod program;
mod provenance;
mod request;
mod subject;
mod wait;

pub use call::{
    BudgetCharged, CallFinished, CallStarted, CallVerdict, IdempotencyKey, OmittedFile, ProcessStarted,
    RequestStarted, StepFinished, WorkspaceRevision, WorkspaceRoot,
};
pub use changes::{CallChanges, ChangeCounts, ChangeKind, ChangedPath, FileContent};
pub use effect::{Effect, Recovery};
pub use evaluation::{
    EvaluationFailure, EvaluationFinished, EvaluationOutcome, EvaluationResumed, EvaluationStarted,
    TurnFinished,
};
pub use finish::Finish;
pub use inner_message::{InnerMessage, ProviderSidecar, Role};
pub use large::LargeRecord;
pub use program::{ProgramStarted, ResourceChanged, TaskFinished};
pub use provenance::{CarriedCall, CarriedEvaluation, CarriedObject, Provenance};
pub use request::{AfterFailure, RequestFailed, RequestFinished};
pub use subject::{ApprovalSubject, CoveredDigests};
pub use wait::{InvalidSignalName, Wait};
