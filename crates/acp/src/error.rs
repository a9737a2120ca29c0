//! Errors as the protocol has them.

use agent_client_protocol::v1::schema;
use agent_client_protocol::{Error, ErrorCode as ProtocolCode};
use backstitch::RuntimeError;
use backstitch::agent_file::AgentFileError;
use backstitch::code::ErrorCode;
use serde_json::json;

use crate::host::HostError;

/// Creates an error for wrong parameters.
pub(crate) fn invalid(message: impl Into<String>) -> Error {
    Error::new(ProtocolCode::INVALID_PARAMS, message)
}

/// Creates the error for a session that this connection does not have.
pub(crate) fn unknown_session(session: &schema::SessionId) -> Error {
    schema::Error::session_not_found(session.clone()).into()
}

/// Creates the error for a session whose turn has not ended.
pub(crate) fn busy() -> Error {
    Error::new(
        ProtocolCode::INVALID_REQUEST,
        "a turn of this session is running: wait for its end, or cancel it",
    )
}

/// Creates an error with a stable code and advice.
pub(crate) fn coded(code: ErrorCode, message: &str, hint: Option<&str>) -> Error {
    let kind = match code {
        ErrorCode::Usage | ErrorCode::WorkspaceRefused | ErrorCode::WorkspaceGone | ErrorCode::NotTrusted => {
            ProtocolCode::INVALID_PARAMS
        }
        ErrorCode::SessionNotFound => ProtocolCode::RESOURCE_NOT_FOUND,
        _ => ProtocolCode::INTERNAL_ERROR,
    };
    let text = hint.map_or_else(|| message.to_owned(), |hint| format!("{message}; {hint}"));
    Error::new(kind, text).data(json!({"code": code.as_str(), "message": message, "hint": hint}))
}

/// Converts an error of the host.
pub(crate) fn of_host(error: &HostError) -> Error {
    coded(error.code, &error.message, error.hint.as_deref())
}

/// Converts an error of the runtime.
pub(crate) fn of_runtime(error: &RuntimeError) -> Error {
    coded(error.code(), &error.to_string(), None)
}

/// Converts an error of an agent's definition.
pub(crate) fn of_definition(error: &AgentFileError) -> Error {
    coded(error.code(), &error.to_string(), None)
}
