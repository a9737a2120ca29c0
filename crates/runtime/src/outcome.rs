//! How driving a session ends.

use backstitch_core::code::ErrorCode;
use backstitch_core::id::{CallId, EvaluationId, SessionId};
use backstitch_core::journal::{EvaluationFailure, EvaluationFinished, EvaluationOutcome, PauseReason};
use backstitch_core::machine::final_text;
use backstitch_core::message::Large;
use backstitch_core::view::Transcript;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// How driving a session ended. Only the first is an answer; all but the last three can be gone on from.
///
/// ```
/// use std::sync::Arc;
///
/// use backstitch_runtime::{Agent, Runtime};
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
/// let outcome = run.ended().await?; // an answer, a pause, a failure
/// assert_eq!(outcome.answer()?.text, "Mended."); // an error for all others
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum DriveOutcome {
    /// With an answer.
    Completed(FinalAnswer),
    /// The session waits for a decision.
    Paused {
        /// The evaluation.
        evaluation: EvaluationId,
        /// What it waits for.
        reason: PauseReason,
        /// The call that it is about, in the session that waits.
        call: Option<CallId>,
        /// More about it, for a person.
        detail: String,
        /// The session that waits, when it is one that works for the call: what is decided is decided there.
        session: Option<SessionId>,
        /// What was said of an answer that reached its token limit.
        partial: Option<String>,
    },
    /// The evaluation failed.
    Failed {
        /// The evaluation.
        evaluation: EvaluationId,
        /// Why.
        failure: EvaluationFailure,
    },
    /// Someone ended the evaluation.
    Cancelled {
        /// The evaluation.
        evaluation: EvaluationId,
    },
    /// Sections of the prompt have to be open first: another evaluation takes its place.
    Superseded {
        /// The evaluation.
        evaluation: EvaluationId,
        /// The sections, when this process saw which.
        sections: Vec<String>,
        /// Why.
        reason: String,
    },
}

/// An answer.
#[derive(Debug, Clone, PartialEq)]
pub struct FinalAnswer {
    /// The evaluation.
    pub evaluation: EvaluationId,
    /// What the last answer says, with the answers before it that it continues.
    pub text: String,
    /// The structured answer, where there is one.
    pub output: Option<Value>,
}

impl FinalAnswer {
    /// The structured answer as a value of a type; `None` when there is none.
    pub fn output_as<T: DeserializeOwned>(&self) -> Result<Option<T>, serde_json::Error> {
        self.output.as_ref().map(T::deserialize).transpose()
    }
}

impl DriveOutcome {
    /// What the journal says of an evaluation that has ended.
    pub(crate) fn recorded(id: EvaluationId, finished: &EvaluationFinished, transcript: &Transcript) -> Self {
        match finished.outcome {
            EvaluationOutcome::Completed => {
                let text = final_text(&transcript.inner_messages(id));
                let output = finished.output.as_ref().and_then(Large::inline).cloned();
                Self::Completed(FinalAnswer { evaluation: id, text, output })
            }
            EvaluationOutcome::Failed => {
                let unknown = || EvaluationFailure::new(ErrorCode::Unknown, "the evaluation failed");
                Self::Failed { evaluation: id, failure: finished.error.clone().unwrap_or_else(unknown) }
            }
            EvaluationOutcome::Cancelled => Self::Cancelled { evaluation: id },
            EvaluationOutcome::Superseded => {
                Self::Superseded { evaluation: id, sections: Vec::new(), reason: String::new() }
            }
        }
    }
}

impl DriveOutcome {
    /// The stable code that explains why there is no answer; `None` when there is one.
    pub fn code(&self) -> Option<ErrorCode> {
        match self {
            Self::Completed(_) => None,
            Self::Paused { reason, .. } => Some(reason.code()),
            Self::Failed { failure, .. } => Some(failure.code()),
            Self::Cancelled { .. } => Some(ErrorCode::Cancelled),
            Self::Superseded { .. } => Some(ErrorCode::Superseded),
        }
    }
}

impl std::fmt::Display for DriveOutcome {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Completed(_) => write!(formatter, "it has an answer"),
            Self::Paused { reason, detail, .. } => write!(formatter, "it is paused ({reason:?}): {detail}"),
            Self::Failed { failure, .. } => {
                write!(formatter, "it failed ({}): {}", failure.kind, failure.message)
            }
            Self::Cancelled { .. } => write!(formatter, "it was cancelled"),
            Self::Superseded { reason, .. } => {
                write!(formatter, "another evaluation takes its place: {reason}")
            }
        }
    }
}
