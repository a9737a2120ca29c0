//! Outcomes of driving a session.

use std::sync::Arc;

use backstitch_core::code::ErrorCode;
use backstitch_core::id::{CallId, EvaluationId, SessionId};
use backstitch_core::journal::{
    EvaluationFailure, EvaluationFinished, EvaluationOutcome, InnerMessage, PauseReason,
};
use backstitch_core::machine::{final_media, final_text};
use backstitch_core::message::{Large, MediaPart};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The outcome of driving a session. Only `Completed` has an answer, and only `Paused` can be resumed.
///
/// ```
/// use std::sync::Arc;
///
/// use backstitch_runtime::{Agent, Runtime};
/// use backstitch_store::MemoryStore;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let replies = "[[reply]]\ntext = 'Mended.'\n".repeat(2);
/// # let policy = backstitch_providers::ScriptedPolicy::from_toml(&replies)?;
/// let agent = Agent::new("tailor").policy(policy);
/// let runtime = Runtime::new(Arc::new(MemoryStore::new()));
/// let run = runtime.start(&agent, "Mend the coat.").await?;
/// let outcome = run.outcome().await?; // an answer, a pause, a failure
/// assert_eq!(outcome.answer()?.text, "Mended."); // an error for all others
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum DriveOutcome {
    /// The evaluation has an answer.
    Completed(FinalAnswer),
    /// The session waits for a decision.
    Paused {
        /// The evaluation.
        evaluation: EvaluationId,
        /// What it waits for.
        reason: PauseReason,
        /// The call that it is about, in the session that waits.
        call: Option<CallId>,
        /// Details, for a person.
        detail: String,
        /// The child session that waits, if it is not the driven session. The decision is made there.
        session: Option<SessionId>,
        /// The text so far of an answer that reached its token limit.
        partial: Option<String>,
    },
    /// The evaluation failed.
    Failed {
        /// The evaluation.
        evaluation: EvaluationId,
        /// The kind and the message of the error.
        failure: EvaluationFailure,
    },
    /// The evaluation was cancelled.
    Cancelled {
        /// The evaluation.
        evaluation: EvaluationId,
    },
    /// Sections of the prompt have to be opened first. Another evaluation replaces this one.
    Superseded {
        /// The evaluation.
        evaluation: EvaluationId,
        /// The sections, if this process knows them.
        sections: Vec<String>,
        /// The reason that the tool gave.
        reason: String,
    },
}

/// An answer.
#[derive(Debug, Clone, PartialEq)]
pub struct FinalAnswer {
    /// The evaluation.
    pub evaluation: EvaluationId,
    /// The text of the last answer, after that of the answers that it continues. An answer of media alone is
    /// described in words.
    pub text: String,
    /// The media of the answer. [`Runtime::media`](crate::Runtime::media) returns its bytes.
    pub media: Vec<MediaPart>,
    /// The structured answer, if there is one.
    pub output: Option<Value>,
}

impl FinalAnswer {
    /// Deserializes the structured answer. `None` if there is none.
    pub fn output_as<T: DeserializeOwned>(&self) -> Result<Option<T>, serde_json::Error> {
        self.output.as_ref().map(T::deserialize).transpose()
    }
}

impl DriveOutcome {
    /// Returns the outcome of an evaluation that has ended, from its records.
    pub(crate) fn recorded(
        id: EvaluationId,
        finished: &EvaluationFinished,
        messages: &[Arc<InnerMessage>],
    ) -> Self {
        match finished.outcome {
            EvaluationOutcome::Completed => {
                let (text, media) = (final_text(messages), final_media(messages));
                let output = finished.output.as_ref().and_then(Large::inline).cloned();
                Self::Completed(FinalAnswer { evaluation: id, text, media, output })
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
    /// Returns the stable code that explains why there is no answer. `None` if there is one.
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
