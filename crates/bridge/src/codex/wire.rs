//! Messages of the app-server, without IO.

use backstitch_core::text::one_line;
use serde_json::{Map, Value, json};

/// The most characters of a foreign text in an error.
const SHOWN: usize = 120;

/// The id of a request of the app-server, which an answer repeats.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestId(Value);

/// A message that the app-server sends by itself.
#[derive(Debug, Clone, PartialEq)]
pub enum ServerMessage {
    /// It expects an answer.
    Request {
        /// Identifies the answer.
        id: RequestId,
        /// What is requested.
        method: String,
        /// The details.
        params: Value,
    },
    /// It expects none.
    Notification {
        /// What has happened.
        method: String,
        /// The details.
        params: Value,
    },
}

/// A line of the app-server.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Incoming {
    Message(ServerMessage),
    /// The answer to a request of this client.
    Answer {
        id: u64,
        outcome: Result<Value, Refusal>,
    },
}

/// Why a request was refused, in the words of the app-server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) code: i64,
    pub(super) message: String,
}

/// A line that is no message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WireError {
    /// The line is longer than any message.
    #[error("it has more than {limit} bytes")]
    TooLong {
        /// The most bytes of a line.
        limit: usize,
    },
    /// The line is not JSON.
    #[error("it is not JSON ({reason}): {text}")]
    NotJson {
        /// What the parser says.
        reason: String,
        /// Its beginning.
        text: String,
    },
    /// The line is JSON of another form.
    #[error("it is neither a request, nor an answer, nor a notification: {text}")]
    NotMessage {
        /// Its beginning.
        text: String,
    },
}

/// Parses a line. Empty lines are no messages.
pub(super) fn parse(line: &[u8]) -> Result<Option<Incoming>, WireError> {
    if line.iter().all(u8::is_ascii_whitespace) {
        return Ok(None);
    }
    let shown = || one_line(&String::from_utf8_lossy(line.get(..4 * SHOWN).unwrap_or(line)), SHOWN);
    let value: Value = serde_json::from_slice(line)
        .map_err(|error| WireError::NotJson { reason: error.to_string(), text: shown() })?;
    message(value).map(Some).ok_or_else(|| WireError::NotMessage { text: shown() })
}

fn message(value: Value) -> Option<Incoming> {
    let Value::Object(mut fields) = value else { return None };
    let id = fields.remove("id").filter(|id| !id.is_null());
    let method = fields.remove("method");
    let mut params = || fields.remove("params").unwrap_or(Value::Null);
    match (method, id) {
        (Some(Value::String(method)), None) => {
            let params = params();
            Some(Incoming::Message(ServerMessage::Notification { method, params }))
        }
        (Some(Value::String(method)), Some(id @ (Value::String(_) | Value::Number(_)))) => {
            let params = params();
            Some(Incoming::Message(ServerMessage::Request { id: RequestId(id), method, params }))
        }
        (None, Some(id)) => Some(Incoming::Answer { id: id.as_u64()?, outcome: outcome(fields) }),
        _ => None,
    }
}

fn outcome(mut fields: Map<String, Value>) -> Result<Value, Refusal> {
    let Some(error) = fields.remove("error").filter(|error| !error.is_null()) else {
        return Ok(fields.remove("result").unwrap_or(Value::Null));
    };
    let code = error.get("code").and_then(Value::as_i64).unwrap_or_default();
    let message =
        error.get("message").and_then(Value::as_str).map_or_else(|| error.to_string(), str::to_owned);
    Err(Refusal { code, message: one_line(&message, 4 * SHOWN) })
}

/// Renders a request of this client as a line.
pub(super) fn request(id: u64, method: &str, params: &Value) -> Vec<u8> {
    line(&json!({"id": id, "method": method, "params": params}))
}

/// Renders a notification of this client as a line.
pub(super) fn notification(method: &str) -> Vec<u8> {
    line(&json!({ "method": method }))
}

/// Renders an answer to a request of the app-server as a line.
pub(super) fn answer(id: &RequestId, outcome: Result<Value, &str>) -> Vec<u8> {
    match outcome {
        Ok(result) => line(&json!({"id": id.0, "result": result})),
        Err(message) => line(&json!({"id": id.0, "error": {"code": -32_601, "message": message}})),
    }
}

fn line(message: &Value) -> Vec<u8> {
    let mut line = message.to_string().into_bytes();
    line.push(b'\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Option<Incoming>, WireError> {
        parse(text.as_bytes())
    }

    #[test]
    fn the_kinds_of_messages_are_told_apart_by_their_fields() {
        let note = parsed(r#"{"method":"turn/started","params":{"a":1},"emittedAtMs":5}"#).unwrap();
        let expected =
            ServerMessage::Notification { method: "turn/started".to_owned(), params: json!({"a": 1}) };
        assert_eq!(note, Some(Incoming::Message(expected)));
        let Ok(Some(Incoming::Message(ServerMessage::Request { id, params, .. }))) =
            parsed(r#"{"id":"x","method":"item/fileChange/requestApproval"}"#)
        else {
            panic!("a request")
        };
        assert_eq!(params, Value::Null);
        assert_eq!(answer(&id, Ok(json!({}))), b"{\"id\":\"x\",\"result\":{}}\n");
        assert_eq!(parsed(r#"{"id":3}"#), Ok(Some(Incoming::Answer { id: 3, outcome: Ok(Value::Null) })));
        let refused = parsed(r#"{"id":3,"error":{"code":-1,"message":"no\u001b[2J thread"}}"#).unwrap();
        let refusal = Refusal { code: -1, message: "no[2J thread".to_owned() };
        assert_eq!(refused, Some(Incoming::Answer { id: 3, outcome: Err(refusal) }));
        assert_eq!(parsed(" \r\n"), Ok(None));
    }

    #[test]
    fn hostile_lines_are_errors_that_show_no_control_characters() {
        for text in ["{", "\u{1b}[2J", "nonsense\u{7}", "{\"method\":", "\u{0}"] {
            let error = parsed(text).unwrap_err();
            assert!(matches!(error, WireError::NotJson { .. }), "{error:?}");
            assert!(!error.to_string().chars().any(char::is_control), "{error:?}");
        }
        assert!(matches!(parse(&[0xff, 0xfe, b'{']), Err(WireError::NotJson { .. })));
        for text in ["[]", "7", "null", "{}", r#"{"method":7}"#, r#"{"id":{},"method":"x"}"#, r#"{"id":"x"}"#]
        {
            assert!(matches!(parsed(text), Err(WireError::NotMessage { .. })), "{text}");
        }
        // A parser without a limit of its depth would overflow the stack.
        let deep = format!("{}{}", "[".repeat(1_000_000), "]".repeat(1_000_000));
        assert!(parsed(&deep).unwrap_err().to_string().len() < 1_000);
    }
}
