//! Results of calls, as messages for the model.

use backstitch_core::extra::Extra;
use backstitch_core::message::{Message, OptionResult, PolicyName, Retry};
use backstitch_core::ports::{UncoveredPath, UncoveredReason};
use backstitch_core::tool::{ToolError, ToolResult, ValueInContext};
use serde_json::{Map, Value, json};

use super::request::CallRequest;
use crate::content::{result_message, storable};

/// The most characters of a result in lists.
const LONGEST_SUMMARY: usize = 80;

/// The most paths that are named if they were not rolled back.
const MOST_NAMED: usize = 10;

/// The author of a failure message.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Speaker {
    Tool,
    /// The runtime, about a tool that could not or may not answer.
    Runtime,
}

/// The failure of a call, for the model.
pub(super) struct Failure {
    pub(super) speaker: Speaker,
    pub(super) kind: String,
    pub(super) message: String,
    pub(super) retry: Retry,
}

impl Failure {
    pub(super) fn by_runtime(kind: &str, message: impl Into<String>, retry: Retry) -> Self {
        Self { speaker: Speaker::Runtime, kind: kind.to_owned(), message: message.into(), retry }
    }

    /// Returns the failure that an error of a tool stands for.
    pub(super) fn of_tool(error: ToolError) -> Self {
        let speaker = Speaker::Tool;
        match error {
            ToolError::Failed { kind, message, retry, .. } => Self { speaker, kind, message, retry },
            ToolError::Validation { message } => {
                Self { speaker, kind: "validation".to_owned(), message, retry: Retry::Allowed }
            }
            other => Self::by_runtime("tool_failed", other.to_string(), Retry::Refused),
        }
    }
}

/// Returns the message of a success: the tool's text, its value, or both.
pub(super) fn success(call: &CallRequest, result: ToolResult) -> Message {
    let (shown, hidden) = match result.value_in_context {
        ValueInContext::Included => (result.value, None),
        ValueInContext::Excluded => (None, result.value),
    };
    let value = match (result.message.is_empty(), shown) {
        (true, Some(value)) => value,
        (false, Some(value)) => json!({"message": result.message, "value": value}),
        (_, None) => Value::String(result.message),
    };
    let mut payload = OptionResult::new(call.call_id, call.name.as_str(), storable(value));
    payload.parts = result.parts;
    // Kept for readers of the journal. Adapters send only fields that they know.
    if let Some(hidden) = hidden {
        let fields = Map::from_iter([("value_not_in_context".to_owned(), storable(hidden))]);
        payload.extra = Extra::try_from(fields).unwrap_or_default();
    }
    message(call, Speaker::Tool, payload)
}

/// Returns the message of a failure.
pub(super) fn failure(call: &CallRequest, failure: &Failure) -> Message {
    let mut payload = OptionResult::new(call.call_id, call.name.as_str(), Value::Null);
    payload.is_error = true;
    payload.error_type = Some(failure.kind.clone());
    payload.error_message = Some(failure.message.clone());
    payload.retryable = Some(failure.retry == Retry::Allowed);
    message(call, failure.speaker, payload)
}

/// Names the paths that a rollback did not undo. Returns `None` if there are none. Paths that are never
/// covered are not named each time, since the descriptions of tools name them.
pub(super) fn describe_not_rolled_back(paths: &[UncoveredPath]) -> Option<String> {
    let is_known = |reason| {
        use UncoveredReason::{Excluded, OwnFiles, OwnRepository};
        matches!(reason, OwnRepository | OwnFiles | Excluded) || reason.covers_content()
    };
    let mut named: Vec<_> = paths.iter().filter(|one| !is_known(one.reason)).collect();
    named.sort_unstable();
    named.dedup();
    let shown: Vec<_> =
        named.iter().take(MOST_NAMED).map(|one| format!("{} ({})", one.path, one.reason)).collect();
    match named.len() {
        0 => None,
        few if few <= MOST_NAMED => Some(format!("\nnot rolled back: {}", shown.join(", "))),
        many => Some(format!("\nnot rolled back: {} and {} more", shown.join(", "), many - MOST_NAMED)),
    }
}

/// Returns the first line of a result, for lists.
pub(super) fn summary(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    match line.char_indices().nth(LONGEST_SUMMARY) {
        Some((end, _)) => format!("{}...", &line[..end]),
        None => line.to_owned(),
    }
}

fn message(call: &CallRequest, speaker: Speaker, payload: OptionResult) -> Message {
    let mut message = result_message(payload, call.step_num);
    if speaker == Speaker::Runtime {
        message.policy = PolicyName::runtime();
    }
    message
}
