//! The last event of a run, and the exit code of an interrupted one.

use backstitch::RuntimeError;
use serde_json::{Value, json};

use crate::error::{code_of, message_of};

/// Exit code of a command that a signal interrupted.
pub(crate) const INTERRUPTED: u8 = 130;

/// Builds the event `ended`.
pub(crate) fn ended_event(
    session: &Value,
    outcome: &str,
    kind: impl Into<Value>,
    message: impl Into<Value>,
) -> Value {
    let (kind, message): (Value, Value) = (kind.into(), message.into());
    json!({
        "v": 1, "event": "ended", "session": session, "outcome": outcome, "kind": kind, "message": message,
    })
}

/// Builds the event `ended` of a run that an error stopped.
pub(super) fn stopped_event(session: &Value, error: &anyhow::Error) -> Value {
    let known = error.chain().find_map(|error| error.downcast_ref::<RuntimeError>());
    let message = known.map_or_else(|| message_of(error), ToString::to_string);
    let kind = known.map_or_else(|| code_of(error).as_str(), RuntimeError::kind);
    ended_event(session, "stopped", kind, message)
}
