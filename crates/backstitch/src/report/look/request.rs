//! A request to a model, rendered again from the journal.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::RuntimeError;
use crate::agent_file::AgentFileError;
use crate::code::ErrorCode;
use crate::digest::Digest;
use crate::id::EvaluationId;
use crate::report::Version;

/// A request as it was recorded, and as it is rendered now.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RequestReport {
    /// Version of the form.
    pub v: Version,
    /// The evaluation.
    pub evaluation: EvaluationId,
    /// The turn.
    pub turn: u64,
    /// The provider that it was sent to.
    pub provider: String,
    /// The model that it was sent to.
    pub model: String,
    /// The form that was sent.
    pub recorded: RequestForm,
    /// The form that it is rendered to now.
    pub rendered: RequestForm,
    /// Whether both are equal byte for byte, or nothing speaks against it: nothing was sent, or it was rendered for another model.
    pub agrees: bool,
    /// Whether records that it depends on were redacted since then.
    pub redacted: bool,
    /// The comparison, for people.
    pub verdict: String,
    /// The request, if the policy has one.
    pub request: Option<Value>,
}

impl RequestReport {
    /// Whether the policy has no requests, because it is not a model.
    pub fn is_unsent(&self) -> bool {
        self.recorded.digest.is_none() && self.rendered.digest.is_none()
    }
}

/// The form of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RequestForm {
    /// Its digest.
    pub digest: Option<Digest>,
    /// Its length, in bytes.
    pub length: u64,
    /// Version of the renderer.
    pub renderer: Option<String>,
}

/// A request that was rendered again, and its bytes.
#[derive(Debug, Clone, PartialEq)]
pub struct RenderedRequest {
    /// What is known about it.
    pub report: RequestReport,
    /// Its body, exactly as it is sent; `None` if the policy has no requests.
    pub body: Option<String>,
}

/// A request could not be rendered again.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// The session has no messages.
    #[error("the session has no messages yet")]
    NoMessages,
    /// The session has no such request.
    #[error("no request{} is recorded in this session itself", of_turn(*.turn))]
    NotFound {
        /// The turn, if one was named.
        turn: Option<u64>,
    },
    /// The agent of the session cannot be built.
    #[error(transparent)]
    Agent(#[from] AgentFileError),
    /// The session cannot be read.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
}

impl RequestError {
    /// Returns the stable code of the error.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::NoMessages => ErrorCode::NoMessages,
            Self::NotFound { .. } => ErrorCode::RequestNotFound,
            Self::Agent(error) => error.code(),
            Self::Runtime(error) => error.code(),
        }
    }
}

fn of_turn(turn: Option<u64>) -> String {
    turn.map(|turn| format!(" of turn {turn}")).unwrap_or_default()
}
