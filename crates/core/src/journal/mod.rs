//! The journal: everything that happens in a session, in order.
//!
//! A session has one journal. It only grows, by [batches](Batch) that are appended whole; a [`Record`] in it never changes.
//! Whatever else there is, the session's state, the transcript, checkpoints, costs, is a view: a pure function of records
//! (see [`crate::view`]). Going back is a record too ([`Rewound`]), so nothing is ever deleted.

mod batch;
mod call;
mod codec;
mod evaluation;
mod finish;
mod inbox;
mod inner_message;
mod large;
mod lifecycle;
mod place;
mod position;
mod program;
mod provenance;
mod record;
mod resource;

pub use batch::Batch;
pub use call::{
    BudgetCharged, CallFinished, CallOutcome, CallStarted, Effect, Files, IdempotencyKey, LeftOut,
    ProcessStarted, RequestStarted, StepFinished, WorkspaceRoot,
};
pub use codec::{DecodeError, DecodeProblem, EncodeError};
pub use evaluation::{
    EvaluationFailure, EvaluationFinished, EvaluationResumed, EvaluationStarted, Outcome, TurnFinished,
};
pub use finish::Finish;
pub use inbox::{InboxId, InboxItem, InboxKind};
pub use inner_message::{InnerMessage, ProviderSidecar, Role};
pub use lifecycle::{
    Decision, Note, ObservationCause, Origin, PauseReason, Paused, Resolved, Rewound, SessionCreated,
    WorkspaceObserved,
};
pub use place::{MAX_TURN, SequenceError, inner_message_append};
pub(crate) use place::{Place, place_after, stands_at};
pub use position::{Branch, Point, Position};
pub use program::{ProgramStarted, TaskFinished};
pub use provenance::{CarriedCall, CarriedEvaluation, CarriedObject, Provenance};
pub use record::{Record, RecordBody};
pub use resource::ResourceChanged;
