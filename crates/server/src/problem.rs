//! Errors as clients receive them: problem details (RFC 9457) with the stable codes of `docs/errors`.

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use backstitch::RuntimeError;
use backstitch::agent_file::AgentFileError;
use backstitch::code::ErrorCode;
use backstitch::host::FindError;
use backstitch::ports::{SelectError, StoreError};
use backstitch::redaction::ValueRefused;
use backstitch::report::RequestError;
use backstitch::tool::with_causes;
use http::StatusCode;
use http::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Seconds after which a client may try again.
const RETRY_SECONDS: &str = "2";

/// An error, as it is sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Problem {
    /// A URN with the code.
    pub r#type: String,
    /// What the code means.
    pub title: Box<str>,
    /// The status of the answer.
    pub status: u16,
    /// What failed, on what, and why.
    pub detail: String,
    /// The stable code.
    pub code: String,
    /// What to do instead. Left out if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl Problem {
    /// Creates a problem with the usual status of its code.
    pub fn new(code: ErrorCode, detail: impl Into<String>) -> Self {
        Self::with_status(status_of(code), code, detail)
    }

    /// Creates a problem with a status.
    pub fn with_status(status: StatusCode, code: ErrorCode, detail: impl Into<String>) -> Self {
        Self {
            r#type: format!("urn:backstitch:error:{code}"),
            title: code.summary().into(),
            status: status.as_u16(),
            detail: detail.into(),
            code: code.as_str().to_owned(),
            hint: None,
        }
    }

    /// Adds what to do instead.
    #[must_use]
    pub fn with_hint(self, hint: Option<impl Into<String>>) -> Self {
        Self { hint: hint.map(Into::into), ..self }
    }

    /// A request that cannot be understood.
    pub(crate) fn invalid(detail: impl Into<String>) -> Self {
        Self::new(ErrorCode::RequestInvalid, detail)
    }

    /// A request that asks for more than the person gave who started the server.
    pub(crate) fn beyond(detail: impl Into<String>) -> Self {
        Self::new(ErrorCode::BeyondRights, detail)
    }

    /// The server has no place for the request now.
    pub(crate) fn busy(status: StatusCode, detail: impl Into<String>) -> Self {
        Self::with_status(status, ErrorCode::ServerBusy, detail)
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        if status.is_server_error() && status != StatusCode::SERVICE_UNAVAILABLE {
            tracing::warn!(code = self.code, detail = self.detail, "a request failed");
        }
        let mut response = Response::new(Body::from(serde_json::to_vec(&self).unwrap_or_default()));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        match status {
            StatusCode::UNAUTHORIZED => {
                headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"backstitch\""));
            }
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
                headers.insert(RETRY_AFTER, HeaderValue::from_static(RETRY_SECONDS));
            }
            _ => {}
        }
        response
    }
}

/// Returns the usual status of a code.
fn status_of(code: ErrorCode) -> StatusCode {
    use ErrorCode as Code;
    match code {
        Code::Usage
        | Code::RequestInvalid
        | Code::QueryInvalid
        | Code::ValueRefused
        | Code::EmptyMission
        | Code::BundleInvalid
        | Code::NotAStore
        | Code::AgentFile
        | Code::NoModel
        | Code::MissingKey
        | Code::Script => StatusCode::BAD_REQUEST,
        Code::AccessDenied
        | Code::BeyondRights
        | Code::ServerReadOnly
        | Code::NotTrusted
        | Code::StoreReadOnly
        | Code::WorkspaceRefused => StatusCode::FORBIDDEN,
        Code::NoSuchRoute
        | Code::SessionNotFound
        | Code::EvaluationNotFound
        | Code::FileNotFound
        | Code::PointNotFound
        | Code::RequestNotFound
        | Code::StoreNotFound
        | Code::ObjectMissing
        | Code::NoMessages => StatusCode::NOT_FOUND,
        Code::Pruned | Code::Redacted | Code::ObjectLost => StatusCode::GONE,
        Code::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        Code::AlreadyExists
        | Code::SessionAmbiguous
        | Code::SessionConflict
        | Code::SubAgent
        | Code::SessionHeld
        | Code::SessionShared
        | Code::ClaimLost
        | Code::EvaluationOpen
        | Code::NothingToUndo
        | Code::NothingToRedo
        | Code::NothingToRewind
        | Code::NothingToCancel
        | Code::NothingToPause
        | Code::NothingToAccept
        | Code::NothingToApply
        | Code::NotIsolated
        | Code::ApplyConflict
        | Code::ApplyPending
        | Code::DecisionRefused
        | Code::PromptMismatch
        | Code::GuardedSession
        | Code::GuardBusy
        | Code::WorkspaceHeld
        | Code::WorkspaceGone
        | Code::WorkspaceBlocked
        | Code::Poisoned => StatusCode::CONFLICT,
        Code::QueryStopped => StatusCode::UNPROCESSABLE_ENTITY,
        Code::StoreBusy | Code::Shutdown | Code::ServerBusy => StatusCode::SERVICE_UNAVAILABLE,
        Code::StoreUnsupported => StatusCode::NOT_IMPLEMENTED,
        Code::StoreFull => StatusCode::INSUFFICIENT_STORAGE,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

impl From<RuntimeError> for Problem {
    fn from(error: RuntimeError) -> Self {
        Self::new(error.code(), with_causes(&error)).with_hint(error.hint())
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        RuntimeError::from(error).into()
    }
}

impl From<FindError> for Problem {
    fn from(error: FindError) -> Self {
        Self::new(error.code(), with_causes(&error))
    }
}

impl From<RequestError> for Problem {
    fn from(error: RequestError) -> Self {
        Self::new(error.code(), with_causes(&error))
    }
}

impl From<AgentFileError> for Problem {
    fn from(error: AgentFileError) -> Self {
        Self::new(error.code(), with_causes(&error))
    }
}

impl From<SelectError> for Problem {
    fn from(error: SelectError) -> Self {
        Self::new(error.code(), with_causes(&error)).with_hint(error.hint())
    }
}

impl From<ValueRefused> for Problem {
    fn from(error: ValueRefused) -> Self {
        Self::new(error.code(), error.to_string())
    }
}
