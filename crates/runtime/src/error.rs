//! Errors of the runtime.

use backstitch_core::code::ErrorCode;
use backstitch_core::execution::ExecutionStateError;
use backstitch_core::id::{CallId, EvaluationId, SessionId};
use backstitch_core::journal::PauseReason;
use backstitch_core::machine::MachineError;
use backstitch_core::message::MessageError;
use backstitch_core::ports::{
    BundleError, OpenError, Owner, PolicyError, ProcessError, StoreError, WorkspaceError,
};
use backstitch_core::prompt::PromptError;
use backstitch_core::session::{SessionError, SnapshotRestoreError};
use backstitch_core::time::Timestamp;
use backstitch_core::tool::with_causes;
use backstitch_core::view::FoldError;

use std::path::PathBuf;
use std::sync::Arc;

use crate::adapters::DirectoryError;
use crate::checkpoint::CheckpointError;
use crate::contract::InvalidSchema;
use crate::engine_error::EngineError;
use crate::entropy::EntropyError;
use crate::outcome::{DriveOutcome, FinalAnswer};
use crate::tools::DuplicateTool;

/// An error while a session is opened or driven.
///
/// ```
/// use std::sync::Arc;
///
/// use backstitch_runtime::{Agent, Runtime, RuntimeError};
/// use backstitch_store::MemoryStore;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let replies = "[[reply]]\ntext = 'Mended.'\n".repeat(2);
/// # let policy = backstitch_providers::ScriptedPolicy::from_toml(&replies)?;
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
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A store or another file cannot be opened or created.
    #[error(transparent)]
    Open(OpenError),
    /// A session cannot be moved, or a bundle cannot be read.
    #[error(transparent)]
    Bundle(BundleError),
    /// Another process drives the session now, or may drive it. This one does nothing more.
    #[error("session {session} is not held here any more; nothing more is done here")]
    ClaimLost {
        /// The session.
        session: SessionId,
        /// Error of the store.
        #[source]
        source: StoreError,
    },
    /// The journal is inconsistent.
    #[error(transparent)]
    Fold(#[from] FoldError),
    /// The session refused a change.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// Execution state could not be captured or restored.
    #[error(transparent)]
    State(#[from] ExecutionStateError),
    /// Files could not be captured.
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    /// Files could not be restored, or a stopped call does not end. The session cannot continue until a
    /// person decides.
    #[error("session {session} is poisoned: {reason}")]
    Poisoned {
        /// The session.
        session: SessionId,
        /// The failure.
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
    /// The agent of a session is not known here, so the session is left alone.
    #[error("{}, and the session is left alone", unknown_agent(.agent, .session))]
    UnknownAgent {
        /// The session.
        session: SessionId,
        /// The name of its agent, if its journal says it.
        agent: Option<String>,
    },
    /// The agent of a session is known, and cannot be used.
    #[error("the agent {agent:?} of session {session} cannot be used: {}", causes_of(.cause))]
    Agent {
        /// The session.
        session: SessionId,
        /// The name of its agent.
        agent: String,
        /// Why not.
        cause: Arc<dyn std::error::Error + Send + Sync>,
    },
    /// A signal cannot be sent.
    #[error("the signal cannot be sent: {reason}")]
    InvalidSignal {
        /// Why not.
        reason: String,
    },
    /// A schedule cannot be used.
    #[error("the schedule cannot be used: {reason}")]
    InvalidSchedule {
        /// Why not.
        reason: String,
    },
    /// A session with this id exists already.
    #[error("session {session} exists already; start another one with a new id, or ask this one")]
    SessionExists {
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
    /// A write failed, or its caller was dropped before it was confirmed.
    #[error("the last write to session {session} may or may not have been stored; reopen it")]
    AheadOfStore {
        /// The session.
        session: SessionId,
    },
    /// An evaluation cannot continue with another prompt than it was started with.
    #[error("the evaluation was started with prompt {recorded}, and cannot continue with {given}: {reason}")]
    PromptMismatch {
        /// The prompt of the evaluation.
        recorded: String,
        /// The prompt of the agent that resumes it.
        given: String,
        /// The difference.
        reason: String,
    },
    /// A prompt cannot be rendered.
    #[error(transparent)]
    Prompt(#[from] PromptError),
    /// The schema of an output contract cannot be used.
    #[error(transparent)]
    Output(#[from] InvalidSchema),
    /// Two tools have one name.
    #[error(transparent)]
    DuplicateTool(#[from] DuplicateTool),
    /// A call may have had an effect outside, and it is not known whether it did.
    #[error("it is unknown whether {tool} (call {call}{}) took effect; decide that before the session continues", in_session(*.session))]
    ToolIdempotencyError {
        /// The call.
        call: CallId,
        /// The tool.
        tool: String,
        /// The session of the sub-agent that made the call, at any depth. The decision is made there. `None`
        /// for the driven session.
        session: Option<SessionId>,
    },
    /// A checkpoint could not be saved. No action followed it.
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
    /// The policy did not answer. The session can be resumed.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The operating system provided no entropy for a new session.
    #[error(transparent)]
    Entropy(#[from] EntropyError),
    /// A named point does not exist in the session.
    #[error("{point}: {reason}")]
    NoSuchPoint {
        /// The point, as the caller wrote it.
        point: String,
        /// Why it does not exist.
        reason: String,
    },
    /// A prompt without a mission cannot start an evaluation.
    #[error("the prompt has no mission")]
    EmptyMission,
    /// The session was never rewound, or all of its rewinds are undone.
    #[error("there is nothing to undo in session {session}")]
    NothingToUndo {
        /// The session.
        session: SessionId,
    },
    /// The files of a point hold no such path, and neither do the current ones.
    #[error("there is no file {path} at {point}, and none now")]
    NoSuchFile {
        /// The point.
        point: String,
        /// The path.
        path: String,
    },
    /// There is no rewind to repeat.
    #[error("there is nothing to redo: no rewind of session {session} was undone, or it has continued since")]
    NothingToRedo {
        /// The session.
        session: SessionId,
    },
    /// A rewind would change nothing.
    #[error("session {session} is at that point already")]
    NothingToRewind {
        /// The session.
        session: SessionId,
    },
    /// A summary of the conversation would replace nothing.
    #[error("there is nothing to compact in session {session}: {reason}")]
    NothingToCompact {
        /// The session.
        session: SessionId,
        /// Why there is nothing.
        reason: String,
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
    /// An invariant of the runtime is broken. This is a defect.
    #[error("internal error: {reason}")]
    Internal {
        /// The broken invariant.
        reason: String,
    },
    /// An evaluation is open, and has to end first.
    #[error("evaluation {evaluation} is still open, and has to end first")]
    EvaluationOpen {
        /// The evaluation.
        evaluation: EvaluationId,
    },
    /// A decision does not fit the pause of the session.
    #[error("{0}")]
    Unresolvable(String),
    /// The session has files, and no workspace to restore them into.
    #[error("session {session} has files, and no workspace was given to put them into")]
    NoWorkspace {
        /// The session.
        session: SessionId,
    },
    /// The session has no files, which the operation is about.
    #[error("session {session} has no files")]
    NoFiles {
        /// The session.
        session: SessionId,
    },
    /// The clock was never set, so ages cannot be computed. Nothing was deleted.
    #[error("the clock of this machine says {now}, so ages cannot be computed")]
    UnsetClock {
        /// The time of the clock.
        now: Timestamp,
    },
    /// The answer reached its token limit before it was complete.
    #[error("the answer reached its token limit before it was complete")]
    Truncated {
        /// Its text so far.
        text: String,
        /// The session of the sub-agent whose answer it is, at any depth. `None` for the driven session.
        session: Option<SessionId>,
    },
    /// The evaluation's deadline has passed. It continues when it is resumed with more time.
    #[error("the deadline of evaluation {evaluation} has passed")]
    DeadlineExceeded {
        /// The evaluation.
        evaluation: EvaluationId,
        /// The session of the sub-agent that ran out of time, at any depth. `None` for the driven session.
        session: Option<SessionId>,
    },
    /// The session has no answer that was cut off and could be accepted.
    #[error("session {session} has no answer that was cut off, so there is nothing to accept")]
    NothingToAccept {
        /// The session.
        session: SessionId,
    },
    /// The evaluation ended or paused without an answer.
    #[error("there is no answer: {ended}")]
    NoAnswer {
        /// The outcome.
        ended: Box<DriveOutcome>,
    },
    /// An agent has neither a model nor a policy.
    #[error("agent {agent} has no model and no policy")]
    NoModel {
        /// The agent.
        agent: String,
    },
    /// The model of an agent cannot be opened.
    #[error("the model {model} of agent {agent} cannot be opened: {}", with_causes(&**cause))]
    Model {
        /// The agent.
        agent: String,
        /// The model's name.
        model: String,
        /// Error of the adapter.
        cause: Arc<dyn std::error::Error + Send + Sync>,
    },
    /// The directory of an agent cannot be opened.
    #[error("the workspace {} cannot be opened: {}", directory.display(), with_causes(&**cause))]
    Directory {
        /// The directory.
        directory: PathBuf,
        /// Error of the adapter.
        cause: Arc<dyn std::error::Error + Send + Sync>,
    },
    /// The directory of a session cannot be used.
    #[error(transparent)]
    OpenDirectory(#[from] DirectoryError),
    /// A session was taken over, and the process that drove it has not released its directory.
    #[error(
        "session {session} was taken over, but {directory} is still used by {holder}, which does not stop; \
         end that process, then resume the session"
    )]
    DirectoryNotReleased {
        /// The session.
        session: SessionId,
        /// The directory.
        directory: String,
        /// The session and the process that use it.
        holder: String,
    },
    /// A program has not reported the end of a call that may change files of the same directory.
    #[error(
        "{tool} of session {session} has not ended, and may change files in this directory; nothing was changed"
    )]
    DirectoryBusy {
        /// The session of the program.
        session: SessionId,
        /// The tool of the call.
        tool: String,
    },
    /// The process that holds a session could not be ended.
    #[error("{owner} drives session {session} and cannot be ended: {reason}")]
    HolderNotEnded {
        /// The session.
        session: SessionId,
        /// The holder.
        owner: Owner,
        /// Why it could not be ended.
        reason: String,
    },
    /// A handler made a call that needs files or resources which its own call holds.
    #[error(
        "{inner} cannot run inside of {outer}, which holds the files and resources of the session until it has ended; \
         let {outer} use neither, or make the call after it"
    )]
    NestedCall {
        /// The tool of the refused call.
        inner: String,
        /// The tool of the call that it was made in.
        outer: String,
    },
    /// The answer does not have the requested type.
    #[error("the answer is no {wanted}: {reason}")]
    AnswerType {
        /// Name of the type.
        wanted: &'static str,
        /// Why it does not fit.
        reason: String,
    },
    /// The task that drove a session panicked. The session can be resumed.
    #[error("the task that drove the session panicked; what was stored can be resumed")]
    DriverPanicked,
    /// The session does not work in a copy of a project.
    #[error("session {session} does not work in a copy of a project")]
    NotIsolated {
        /// The session.
        session: SessionId,
    },
    /// No application of the session's changes can be undone.
    #[error("no application of session {session} can be undone")]
    NothingToApply {
        /// The session.
        session: SessionId,
    },
    /// An application of the session's changes was interrupted, and has to be completed first.
    #[error("applying session {session} to {directory} was interrupted, and has to be completed first")]
    ApplyPending {
        /// The session.
        session: SessionId,
        /// The directory.
        directory: String,
    },
    /// The engine of the agent cannot do its work.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// An error that is shared by several readers.
    #[error(transparent)]
    Shared(Arc<RuntimeError>),
    /// A process that an interrupted call left could not be ended.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// A task was aborted because the async runtime shuts down.
    #[error("the async runtime is shutting down")]
    ShuttingDown,
    /// The caller is not inside of an async runtime of tokio.
    #[error(
        "sessions are driven by tasks of tokio: call this inside of a tokio runtime with its time driver enabled"
    )]
    NoAsyncRuntime,
}

/// The result of what can fail with a [`RuntimeError`].
pub(crate) type Result<T, E = RuntimeError> = std::result::Result<T, E>;

impl RuntimeError {
    /// Returns the word that is recorded for the error: its code, or the kind that a policy chose.
    pub fn kind(&self) -> &str {
        match self.cause() {
            Self::Policy(error) => &error.kind,
            other => other.code().as_str(),
        }
    }

    /// Whether the store did not answer, was locked for too long, has no room or has lost records, or this process may not write to the
    /// session any more. None of it says anything about the call that met it.
    pub(crate) fn is_outage(&self) -> bool {
        use ErrorCode::{ClaimLost, HistoryLost, StoreBusy, StoreFull, StoreUnavailable, WriteUnknown};
        matches!(
            self.code(),
            StoreUnavailable | StoreBusy | StoreFull | HistoryLost | WriteUnknown | ClaimLost
        )
    }

    /// Returns the stable code of the error.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Store(error) => error.code(),
            Self::Open(error) => error.code(),
            Self::Bundle(error) => error.code(),
            Self::ClaimLost { .. } => ErrorCode::ClaimLost,
            Self::Fold(_) | Self::CircularFork { .. } => ErrorCode::JournalInvalid,
            Self::Session(_) | Self::State(_) => ErrorCode::State,
            Self::Workspace(error) => error.code(),
            Self::NoWorkspace { .. } => ErrorCode::Workspace,
            Self::NoFiles { .. } | Self::UnsetClock { .. } => ErrorCode::Usage,
            Self::Poisoned { .. } => ErrorCode::Poisoned,
            Self::NoEvaluation { .. } => ErrorCode::EvaluationNotFound,
            Self::SessionNotFound { .. } => ErrorCode::SessionNotFound,
            Self::SessionExists { .. } => ErrorCode::AlreadyExists,
            Self::UnknownAgent { .. } => ErrorCode::UnknownAgent,
            Self::Agent { .. } => ErrorCode::AgentFile,
            Self::InvalidSignal { .. } | Self::InvalidSchedule { .. } => ErrorCode::Usage,
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
            Self::NoSuchFile { .. } => ErrorCode::FileNotFound,
            Self::EmptyMission => ErrorCode::EmptyMission,
            Self::NothingToUndo { .. } => ErrorCode::NothingToUndo,
            Self::NothingToRedo { .. } => ErrorCode::NothingToRedo,
            Self::NothingToRewind { .. } => ErrorCode::NothingToRewind,
            Self::NothingToCompact { .. } => ErrorCode::NothingToCompact,
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
            Self::Directory { cause, .. } => {
                cause.downcast_ref::<WorkspaceError>().map_or(ErrorCode::Workspace, WorkspaceError::code)
            }
            Self::OpenDirectory(error) => error.code(),
            Self::DirectoryNotReleased { .. } => ErrorCode::WorkspaceHeld,
            Self::DirectoryBusy { .. } => ErrorCode::GuardBusy,
            Self::HolderNotEnded { .. } => ErrorCode::SessionHeld,
            Self::NestedCall { .. } => ErrorCode::NestedCall,
            Self::NotIsolated { .. } => ErrorCode::NotIsolated,
            Self::NothingToApply { .. } => ErrorCode::NothingToApply,
            Self::ApplyPending { .. } => ErrorCode::ApplyPending,
            Self::AnswerType { .. } => ErrorCode::AnswerType,
            Self::Shared(shared) => shared.code(),
            Self::Process(error) => error.code(),
            Self::Engine(error) => error.code(),
            Self::ShuttingDown => ErrorCode::Shutdown,
            Self::DriverPanicked => ErrorCode::Panic,
            Self::NoAsyncRuntime => ErrorCode::NoAsyncRuntime,
        }
    }

    /// What to do instead, for something that the store does not support.
    pub fn hint(&self) -> Option<&'static str> {
        match self.cause() {
            Self::Store(error) => error.hint(),
            Self::Open(error) => error.hint(),
            _ => None,
        }
    }

    /// Returns the error itself, if it is shared.
    pub fn cause(&self) -> &Self {
        match self {
            Self::Shared(shared) => shared.cause(),
            own => own,
        }
    }
}

impl From<OpenError> for RuntimeError {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Store(error) => Self::Store(error),
            other => Self::Open(other),
        }
    }
}

impl From<BundleError> for RuntimeError {
    fn from(error: BundleError) -> Self {
        match error {
            BundleError::Store(error) => Self::Store(error),
            BundleError::Open(error) => error.into(),
            other => Self::Bundle(other),
        }
    }
}

impl DriveOutcome {
    /// Returns the answer. Any other outcome is an error.
    pub fn answer(self) -> Result<FinalAnswer> {
        match self {
            Self::Completed(answered) => Ok(answered),
            Self::Paused {
                reason: PauseReason::EffectUnknown, call: Some(call), detail, session, ..
            } => {
                // A reason may follow the name of the tool.
                let tool = detail.split(": ").next().unwrap_or_default().to_owned();
                Err(RuntimeError::ToolIdempotencyError { call, tool, session })
            }
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

/// Describes an error with its causes.
fn causes_of(error: &Arc<dyn std::error::Error + Send + Sync>) -> String {
    with_causes(&**error)
}

/// Says which agent is not known.
fn unknown_agent(agent: &Option<String>, session: &SessionId) -> String {
    match agent {
        Some(agent) => format!("the agent {agent:?} of session {session} is not known here"),
        None => format!("session {session} does not name its agent"),
    }
}

/// Names the session of a call, for the text of an error.
fn in_session(session: Option<SessionId>) -> String {
    session.map(|session| format!(" of session {session}")).unwrap_or_default()
}
