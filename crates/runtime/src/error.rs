//! What can go wrong while a session is driven.

use backstitch_core::code::ErrorCode;
use backstitch_core::execution::ExecutionStateError;
use backstitch_core::id::{CallId, EvaluationId, SessionId};
use backstitch_core::journal::PauseReason;
use backstitch_core::machine::MachineError;
use backstitch_core::message::MessageError;
use backstitch_core::ports::{PolicyError, ProcessError, StoreError, WorkspaceError};
use backstitch_core::prompt::PromptError;
use backstitch_core::session::{SessionError, SnapshotRestoreError};
use backstitch_core::view::FoldError;

use std::path::PathBuf;
use std::sync::Arc;

use crate::checkpoint::CheckpointError;
use crate::contract::InvalidSchema;
use crate::entropy::EntropyError;
use crate::outcome::{DriveOutcome, FinalAnswer};
use crate::tools::DuplicateTool;

/// A session could not be opened or driven on.
///
/// ```
/// use std::sync::Arc;
///
/// use backstitch_runtime::{Agent, Runtime, RuntimeError};
/// use backstitch_store::MemoryStore;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use backstitch_providers::{Script, ScriptFormat, ScriptedPolicy};
/// # let replies = "[[reply]]\ntext = 'Mended.'\n".repeat(2);
/// # let script = Script::parse(&replies, ScriptFormat::Toml, "script")?;
/// # let policy = ScriptedPolicy::new(backstitch_core::message::PolicyName::new("model")?, script);
/// let agent = Agent::new("tailor").policy(policy);
/// let runtime = Runtime::new(Arc::new(MemoryStore::new()));
/// let run = runtime.start(&agent, "Mend the coat.").await?;
/// let error = run.answer::<u32>().await.unwrap_err();
/// // Errors of a run are shared between its readers: `cause` is the error itself.
/// assert!(matches!(error.cause(), RuntimeError::AnswerType { .. }));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RuntimeError {
    /// The store refused or failed.
    #[error(transparent)]
    Store(StoreError),
    /// Someone else drives the session now. Nothing more of ours is written.
    #[error("session {session} was taken over; nothing more is written here")]
    LeaseLost {
        /// The session.
        session: SessionId,
        /// What the store said.
        #[source]
        source: StoreError,
    },
    /// The journal does not make sense.
    #[error(transparent)]
    Fold(#[from] FoldError),
    /// The session refused a change.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// Execution state could not be captured or put back.
    #[error(transparent)]
    State(#[from] ExecutionStateError),
    /// Files could not be captured.
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    /// Files could not be put back, or a stopped call does not end: nothing goes on until a person has looked.
    #[error("session {session} is poisoned: {reason}")]
    Poisoned {
        /// The session.
        session: SessionId,
        /// What happened.
        reason: String,
    },
    /// There is no such evaluation.
    #[error("there is no evaluation {evaluation}")]
    NoEvaluation {
        /// The evaluation.
        evaluation: EvaluationId,
    },
    /// There is no such session.
    #[error("there is no session {session}")]
    SessionNotFound {
        /// The session.
        session: SessionId,
    },
    /// The session exists and has no messages, so there is nothing to resume. It can be started.
    #[error("session {session} has no messages, so there is nothing to resume")]
    ConversationNotFound {
        /// The session.
        session: SessionId,
    },
    /// A session is a fork of itself.
    #[error("session {session} is a fork of itself")]
    CircularFork {
        /// The session.
        session: SessionId,
    },
    /// What was done could not be made durable, or nobody waited to see whether it was.
    #[error("the last write to session {session} may or may not have been stored; reopen it")]
    AheadOfStore {
        /// The session.
        session: SessionId,
    },
    /// An evaluation cannot go on with another prompt than it was started with.
    #[error("the evaluation was started with prompt {recorded}, and cannot continue with {given}: {reason}")]
    PromptMismatch {
        /// The prompt of the evaluation.
        recorded: String,
        /// The prompt that was given.
        given: String,
        /// What does not fit.
        reason: String,
    },
    /// A prompt cannot be rendered.
    #[error(transparent)]
    Prompt(#[from] PromptError),
    /// What an answer is to look like cannot be used.
    #[error(transparent)]
    Output(#[from] InvalidSchema),
    /// Two tools have one name.
    #[error(transparent)]
    DuplicateTool(#[from] DuplicateTool),
    /// A call may have had an effect outside, and whether it did is not known.
    #[error("it is unknown whether {tool} (call {call}{}) took effect; decide that before the session continues", in_session(*.session))]
    ToolIdempotencyError {
        /// The call.
        call: CallId,
        /// The tool.
        tool: String,
        /// The session of the sub-agent that made the call, at whatever depth: the decision is made there. `None` when it is the
        /// session that was driven.
        session: Option<SessionId>,
    },
    /// A checkpoint could not be saved. Nothing was done after it.
    #[error(transparent)]
    Checkpoint(Box<CheckpointError>),
    /// A snapshot or conversation is damaged: no session can start from it, and none was created.
    #[error(transparent)]
    SnapshotRestore(#[from] SnapshotRestoreError),
    /// A message cannot be built or read.
    #[error(transparent)]
    Message(#[from] MessageError),
    /// The machine of an evaluation cannot be rebuilt.
    #[error(transparent)]
    Machine(#[from] MachineError),
    /// Whoever decides did not answer. The session can be resumed.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The system gave no entropy for a new session.
    #[error(transparent)]
    Entropy(#[from] EntropyError),
    /// A point that was named does not exist in the session.
    #[error("{point}: {reason}")]
    NoSuchPoint {
        /// The point, as it was given.
        point: String,
        /// Why there is none.
        reason: String,
    },
    /// A prompt without a mission cannot start an evaluation.
    #[error("the prompt has no mission")]
    EmptyMission,
    /// The session was never rewound.
    #[error("session {session} was never rewound, so there is nothing to undo")]
    NothingToUndo {
        /// The session.
        session: SessionId,
    },
    /// A rewind would change nothing.
    #[error("session {session} is at that point already")]
    NothingToRewind {
        /// The session.
        session: SessionId,
    },
    /// No evaluation is open that could be cancelled.
    #[error("there is nothing to cancel: no evaluation of session {session} is open")]
    NothingToCancel {
        /// The session.
        session: SessionId,
    },
    /// No evaluation is open that could be paused.
    #[error("there is nothing to pause: no evaluation of session {session} is open")]
    NothingToPause {
        /// The session.
        session: SessionId,
    },
    /// The runtime contradicts itself. This is a defect of it.
    #[error("internal error: {reason}")]
    Internal {
        /// What does not fit.
        reason: String,
    },
    /// An evaluation is under way and has to end first.
    #[error("evaluation {evaluation} is still open, and has to end first")]
    EvaluationOpen {
        /// The evaluation.
        evaluation: EvaluationId,
    },
    /// A decision does not fit what the session waits for.
    #[error("{0}")]
    Unresolvable(String),
    /// Files are needed and there are none.
    #[error("session {session} has files, and no workspace was given to put them into")]
    NoWorkspace {
        /// The session.
        session: SessionId,
    },
    /// The answer reached its token limit before it was complete.
    #[error("the answer reached its token limit before it was complete")]
    Truncated {
        /// What was said of it.
        text: String,
        /// The session of the sub-agent whose answer it is, at whatever depth; `None` when it is the session that was driven.
        session: Option<SessionId>,
    },
    /// The evaluation's deadline has passed. It goes on when it is resumed with more time.
    #[error("the deadline of evaluation {evaluation} has passed")]
    DeadlineExceeded {
        /// The evaluation.
        evaluation: EvaluationId,
        /// The session of the sub-agent that ran out of time, at whatever depth; `None` when it is the session that was driven.
        session: Option<SessionId>,
    },
    /// No answer that reached its token limit waits to be accepted.
    #[error("session {session} has no answer that was cut off, so there is nothing to accept")]
    NothingToAccept {
        /// The session.
        session: SessionId,
    },
    /// There is no answer.
    #[error("there is no answer: {ended}")]
    NoAnswer {
        /// How it ended instead.
        ended: Box<DriveOutcome>,
    },
    /// An agent has neither a model nor a policy.
    #[error("agent {agent} has no model and no policy")]
    NoModel {
        /// The agent.
        agent: String,
    },
    /// The model of an agent cannot be opened.
    #[error("the model {model} of agent {agent} cannot be opened")]
    Model {
        /// The agent.
        agent: String,
        /// The model, as it was named.
        model: String,
        /// What is wrong.
        #[source]
        source: Arc<dyn std::error::Error + Send + Sync>,
    },
    /// The directory of an agent cannot be opened.
    #[error("the workspace {} cannot be opened", directory.display())]
    Directory {
        /// The directory.
        directory: PathBuf,
        /// What is wrong.
        #[source]
        source: Arc<dyn std::error::Error + Send + Sync>,
    },
    /// An answer is no value of the type that was asked for.
    #[error("the answer is no {wanted}: {reason}")]
    AnswerType {
        /// The type.
        wanted: &'static str,
        /// What does not fit.
        reason: String,
    },
    /// The task that drove a session panicked. The session can be resumed.
    #[error("the task that drove the session panicked; what was stored can be resumed")]
    DriverPanicked,
    /// The same error, for several readers.
    #[error(transparent)]
    Shared(Arc<RuntimeError>),
    /// A process that an interrupted call has left could not be ended.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// A task of the runtime was cut off, because the async runtime shuts down.
    #[error("the async runtime is shutting down")]
    ShuttingDown,
}

impl RuntimeError {
    /// The word that is recorded for the error: its code, or the kind that a policy chose.
    pub fn kind(&self) -> &str {
        match self.cause() {
            Self::Policy(error) => &error.kind,
            other => other.code().as_str(),
        }
    }

    /// The stable code of the error.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Store(error) => error.code(),
            Self::LeaseLost { .. } => ErrorCode::LeaseLost,
            Self::Fold(_) | Self::CircularFork { .. } => ErrorCode::JournalInvalid,
            Self::Session(_) | Self::State(_) => ErrorCode::State,
            Self::Workspace(error) => error.code(),
            Self::NoWorkspace { .. } => ErrorCode::Workspace,
            Self::Poisoned { .. } => ErrorCode::Poisoned,
            Self::NoEvaluation { .. } => ErrorCode::EvaluationNotFound,
            Self::SessionNotFound { .. } => ErrorCode::SessionNotFound,
            Self::ConversationNotFound { .. } => ErrorCode::NoMessages,
            Self::AheadOfStore { .. } => ErrorCode::WriteUnknown,
            Self::PromptMismatch { .. } => ErrorCode::PromptMismatch,
            Self::Prompt(_) => ErrorCode::Prompt,
            Self::Output(_) => ErrorCode::OutputSchema,
            Self::DuplicateTool(_) => ErrorCode::DuplicateTool,
            Self::ToolIdempotencyError { .. } => ErrorCode::EffectUnknown,
            Self::Checkpoint(_) => ErrorCode::Checkpoint,
            Self::SnapshotRestore(_) => ErrorCode::Snapshot,
            Self::Message(_) => ErrorCode::Message,
            Self::Machine(error) => error.code(),
            Self::Policy(error) => error.code(),
            Self::Entropy(_) => ErrorCode::Entropy,
            Self::NoSuchPoint { .. } => ErrorCode::PointNotFound,
            Self::EmptyMission => ErrorCode::EmptyMission,
            Self::NothingToUndo { .. } => ErrorCode::NothingToUndo,
            Self::NothingToRewind { .. } => ErrorCode::NothingToRewind,
            Self::NothingToCancel { .. } => ErrorCode::NothingToCancel,
            Self::NothingToPause { .. } => ErrorCode::NothingToPause,
            Self::NothingToAccept { .. } => ErrorCode::NothingToAccept,
            Self::Internal { .. } => ErrorCode::Internal,
            Self::EvaluationOpen { .. } => ErrorCode::EvaluationOpen,
            Self::Unresolvable(_) => ErrorCode::DecisionRefused,
            Self::Truncated { .. } => ErrorCode::Truncated,
            Self::DeadlineExceeded { .. } => ErrorCode::Deadline,
            Self::NoAnswer { ended } => ended.code().unwrap_or(ErrorCode::Internal),
            Self::NoModel { .. } => ErrorCode::NoModel,
            Self::Model { .. } => ErrorCode::Model,
            Self::Directory { source, .. } => {
                source.downcast_ref::<WorkspaceError>().map_or(ErrorCode::Workspace, WorkspaceError::code)
            }
            Self::AnswerType { .. } => ErrorCode::AnswerType,
            Self::Shared(shared) => shared.code(),
            Self::Process(error) => error.code(),
            Self::ShuttingDown => ErrorCode::Shutdown,
            Self::DriverPanicked => ErrorCode::Panic,
        }
    }

    /// The error itself, where it is shared.
    pub fn cause(&self) -> &Self {
        match self {
            Self::Shared(shared) => shared.cause(),
            own => own,
        }
    }
}

impl DriveOutcome {
    /// The answer. Everything else is an error that says what to do.
    pub fn answer(self) -> Result<FinalAnswer, RuntimeError> {
        match self {
            Self::Completed(answered) => Ok(answered),
            Self::Paused {
                reason: PauseReason::EffectUnknown,
                call: Some(call),
                detail: tool,
                session,
                ..
            } => Err(RuntimeError::ToolIdempotencyError { call, tool, session }),
            Self::Paused { reason: PauseReason::Truncated, session, partial, .. } => {
                Err(RuntimeError::Truncated { text: partial.unwrap_or_default(), session })
            }
            Self::Paused { reason: PauseReason::Deadline, evaluation, session, .. } => {
                Err(RuntimeError::DeadlineExceeded { evaluation, session })
            }
            other => Err(RuntimeError::NoAnswer { ended: Box::new(other) }),
        }
    }
}

/// Where a call was made, for the text of an error.
fn in_session(session: Option<SessionId>) -> String {
    session.map(|session| format!(" of session {session}")).unwrap_or_default()
}
