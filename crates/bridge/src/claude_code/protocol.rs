//! The lines of Claude Code, as far as they are used. Pure: no process and no files.

use std::time::Duration;

use backstitch_runtime::ObservedResult;
use serde_json::{Value, json};

use crate::fields;
use crate::hooks::{AWAITED, HookEvent};
use crate::messages::{Usage, as_text, blocks, result_of};

/// Seconds that a hook may take. A person may be asked meanwhile.
const HOOK_TIMEOUT: u64 = 7 * 24 * 60 * 60;

/// A line of the program.
#[derive(Debug, PartialEq)]
pub(super) enum Line {
    /// The conversation is open.
    Init { session: String, model: Option<String>, version: Option<String> },
    /// An answer of the model begins.
    MessageStart { of: Option<String>, id: String, model: String, usage: Usage },
    /// A piece of the text of an answer.
    Piece { of: Option<String>, text: String },
    /// The usage so far of an answer.
    MessageUsage { of: Option<String>, usage: Usage },
    /// An answer has ended.
    MessageStop { of: Option<String> },
    /// A part of an answer.
    Answer { of: Option<String>, id: String, model: String, usage: Usage, blocks: Vec<Block> },
    /// Results that the model receives.
    Results(Vec<(String, ObservedResult)>),
    /// A hook event, which the program awaits.
    Hook { request: String, event: HookEvent },
    /// The program asks whether a call may run.
    MayRun { request: String, call: Option<String>, name: String, input: Value },
    /// A request that is not known here.
    OtherRequest { request: String, subtype: String },
    /// The response to a request of this side; an error has a text.
    Response { request: String, error: Option<String> },
    /// A request to the model failed, and is sent again after a delay.
    Retry(FailedRequest),
    /// The end of a turn.
    Turn(TurnEnd),
    /// Nothing that is used.
    Other,
}

/// A part of an answer.
#[derive(Debug, PartialEq)]
pub(super) enum Block {
    Text(String),
    Call { id: String, name: String, input: Value },
}

/// A request to the model that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FailedRequest {
    /// The number of the attempt, from 1.
    pub(super) attempt: u32,
    pub(super) wait: Duration,
    /// The status of HTTP, if there was an answer.
    pub(super) status: Option<u64>,
    /// The error, as one word.
    pub(super) error: String,
}

impl FailedRequest {
    /// Whether the provider does not accept the key or the login, which stays so.
    pub(super) fn is_refused(&self) -> bool {
        self.status == Some(401) || self.error == "authentication_failed"
    }

    /// The error, for people.
    pub(super) fn message(&self) -> String {
        match self.status {
            Some(status) => format!("{} (status {status})", self.error),
            None => self.error.clone(),
        }
    }
}

/// The end of a turn.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct TurnEnd {
    pub(super) subtype: String,
    pub(super) is_error: bool,
    pub(super) text: Option<String>,
    pub(super) cost_micros: Option<u64>,
    pub(super) terminal: Option<String>,
    pub(super) errors: Vec<String>,
}

fn text(value: &Value, name: &str) -> Option<String> {
    fields::text(value, name).map(str::to_owned)
}

fn id(value: &Value, name: &str) -> Option<String> {
    fields::id(value, name).map(str::to_owned)
}

impl Line {
    /// Reads a line. Whatever is not known is [`Line::Other`].
    pub(super) fn of(line: &Value) -> Self {
        known(line).unwrap_or(Self::Other)
    }
}

fn known(line: &Value) -> Option<Line> {
    let of = text(line, "parent_tool_use_id");
    Some(match (fields::text(line, "type")?, fields::text(line, "subtype")) {
        ("system", Some("init")) => Line::Init {
            session: id(line, "session_id")?,
            model: text(line, "model"),
            version: text(line, "claude_code_version"),
        },
        ("system", Some("api_retry")) => Line::Retry(failed_request(line)),
        ("stream_event", _) => return stream_event(line.get("event")?, of),
        ("assistant", _) => return answer(line.get("message")?, of),
        ("user", _) => Line::Results(blocks(line).filter_map(result_of).collect()),
        ("control_request", _) => return control_request(line),
        ("control_response", _) => {
            let response = line.get("response")?;
            let failed = fields::text(response, "subtype") == Some("error");
            let error = || text(response, "error").unwrap_or_else(|| "it was refused".to_owned());
            Line::Response { request: id(response, "request_id")?, error: failed.then(error) }
        }
        ("result", _) => Line::Turn(turn_end(line)),
        _ => return None,
    })
}

fn failed_request(line: &Value) -> FailedRequest {
    let millis = line.get("retry_delay_ms").and_then(Value::as_f64).unwrap_or(0.0);
    let attempt = line.get("attempt").and_then(Value::as_u64).and_then(|attempt| attempt.try_into().ok());
    FailedRequest {
        attempt: attempt.unwrap_or(1),
        wait: Duration::try_from_secs_f64(millis / 1_000.0).unwrap_or_default(),
        status: line.get("error_status").and_then(Value::as_u64),
        error: text(line, "error").unwrap_or_else(|| "unknown".to_owned()),
    }
}

fn stream_event(event: &Value, of: Option<String>) -> Option<Line> {
    Some(match fields::text(event, "type")? {
        "message_start" => {
            let message = event.get("message")?;
            let model = text(message, "model").unwrap_or_default();
            Line::MessageStart { of, id: id(message, "id")?, model, usage: Usage::of(message.get("usage")) }
        }
        "content_block_delta" => Line::Piece { of, text: text(event.get("delta")?, "text")? },
        "message_delta" => Line::MessageUsage { of, usage: Usage::of(event.get("usage")) },
        "message_stop" => Line::MessageStop { of },
        _ => return None,
    })
}

fn answer(message: &Value, of: Option<String>) -> Option<Line> {
    let block = |block: &Value| match fields::text(block, "type")? {
        "text" => text(block, "text").map(Block::Text),
        "tool_use" => Some(Block::Call {
            id: id(block, "id")?,
            name: text(block, "name")?,
            input: block.get("input").cloned().unwrap_or(Value::Null),
        }),
        _ => None,
    };
    let content = message.get("content").and_then(Value::as_array).into_iter().flatten();
    let blocks = content.filter_map(block).collect();
    let model = text(message, "model").unwrap_or_default();
    Some(Line::Answer { of, id: id(message, "id")?, model, usage: Usage::of(message.get("usage")), blocks })
}

fn control_request(line: &Value) -> Option<Line> {
    let (request, body) = (id(line, "request_id")?, line.get("request")?);
    let subtype = text(body, "subtype").unwrap_or_default();
    Some(match subtype.as_str() {
        "hook_callback" => Line::Hook { request, event: HookEvent::of_callback(body) },
        "can_use_tool" => Line::MayRun {
            request,
            call: id(body, "tool_use_id"),
            name: text(body, "tool_name").unwrap_or_default(),
            input: body.get("input").cloned().unwrap_or_else(|| json!({})),
        },
        _ => Line::OtherRequest { request, subtype },
    })
}

fn turn_end(line: &Value) -> TurnEnd {
    let cost =
        line.get("total_cost_usd").and_then(Value::as_f64).filter(|cost| cost.is_finite() && *cost >= 0.0);
    let errors = line.get("errors").and_then(Value::as_array).into_iter().flatten();
    TurnEnd {
        subtype: text(line, "subtype").unwrap_or_default(),
        is_error: fields::is_set(line, "is_error"),
        text: text(line, "result").filter(|text| !text.trim().is_empty()),
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "checked, and it saturates"
        )]
        cost_micros: cost.map(|cost| (cost * 1_000_000.0).round() as u64),
        terminal: text(line, "terminal_reason"),
        errors: errors.map(as_text).collect(),
    }
}

/// The first line for the program.
pub(super) fn initialize() -> Value {
    let hook = |event: &str| json!([{ "hookCallbackIds": [event], "timeout": HOOK_TIMEOUT }]);
    let hooks: Value = AWAITED.iter().map(|event| ((*event).to_owned(), hook(event))).collect();
    request("initialize", &json!({ "subtype": "initialize", "hooks": hooks }))
}

pub(super) fn request(id: &str, body: &Value) -> Value {
    json!({ "type": "control_request", "request_id": id, "request": body })
}

/// A prompt.
pub(super) fn prompt(id: &str, text: &str) -> Value {
    json!({ "type": "user", "message": { "role": "user", "content": text }, "uuid": id })
}

/// A response to a request of the program.
pub(super) fn response(request: &str, body: &Value) -> Value {
    json!({ "type": "control_response", "response": { "subtype": "success", "request_id": request, "response": body } })
}

/// A response that refuses a request.
pub(super) fn refusal(request: &str, why: &str) -> Value {
    json!({ "type": "control_response", "response": { "subtype": "error", "request_id": request, "error": why } })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::Program;

    #[test]
    fn whatever_is_not_known_is_ignored() {
        for line in [
            json!({}),
            json!({"type": 7}),
            json!({"type": "system", "subtype": "init"}),
            json!({"type": "system", "subtype": "init", "session_id": "s".repeat(1_000)}),
            json!({"type": "stream_event"}),
            json!({"type": "stream_event", "event": {"type": "message_start", "message": []}}),
            json!({"type": "assistant", "message": {"content": "x"}}),
            json!({"type": "control_request", "request": {"subtype": "hook_callback"}}),
            json!({"type": "control_response", "response": {}}),
            json!({"type": "later"}),
        ] {
            assert_eq!(Line::of(&line), Line::Other, "{line}");
        }
        assert_eq!(
            Line::of(&json!({"type": "user", "message": {"content": "x"}})),
            Line::Results(Vec::new())
        );
        let hook = json!({"type": "control_request", "request_id": "r", "request":
            {"subtype": "hook_callback", "callback_id": "PreToolUse", "input": {"tool_name": 3}}});
        let Line::Hook { request, event } = Line::of(&hook) else { panic!("no hook") };
        assert_eq!((request.as_str(), event.transcript()), ("r", None));
        assert!(event.report(Program::ClaudeCode).is_err(), "it names no call");
        let Line::Turn(end) = Line::of(&json!({"type": "result", "total_cost_usd": -3, "result": 7})) else {
            panic!("no end")
        };
        assert_eq!((end.cost_micros, end.text, end.is_error), (None, None, false));
    }

    #[test]
    fn failed_requests_have_their_error_and_delay() {
        let line = json!({"type": "system", "subtype": "api_retry", "attempt": 2, "max_retries": 10,
            "retry_delay_ms": 1138.3, "error_status": 401, "error": "authentication_failed"});
        let Line::Retry(failed) = Line::of(&line) else { panic!("no retry") };
        assert_eq!((failed.attempt, failed.wait.as_millis(), failed.is_refused()), (2, 1_138, true));
        assert_eq!(failed.message(), "authentication_failed (status 401)");
        let strange = json!({"type": "system", "subtype": "api_retry", "retry_delay_ms": -1e300, "error": 7});
        let Line::Retry(failed) = Line::of(&strange) else { panic!("no retry") };
        assert_eq!((failed.attempt, failed.wait.as_millis(), failed.is_refused()), (1, 0, false));
    }

    #[test]
    fn results_are_texts_or_values() {
        let line = json!({"type": "user", "message": {"content": [
            {"type": "tool_result", "tool_use_id": "t", "is_error": true, "content": [{"type": "text", "text": "no"}]},
            {"type": "text", "text": "x"}]}});
        let Line::Results(results) = Line::of(&line) else { panic!("no results") };
        assert_eq!(results.len(), 1);
        assert_eq!(results[0].1.outcome, Err("no".to_owned()));
    }
}
