//! Messages of the app-server, without IO.

use backstitch_core::text::one_line;
use serde_json::{Map, Value, json};

/// The most characters of a foreign text in an error.
const SHOWN: usize = 500;

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
pub(super) enum IncomingLine {
    Message(ServerMessage),
    /// The answer to a request of this client: the result, or why it was refused.
    Answer {
        id: u64,
        outcome: Result<Value, String>,
    },
}

impl IncomingLine {
    /// Reads a line. Returns `None` if it is not a message.
    pub(super) fn of(line: Value) -> Option<Self> {
        let Value::Object(mut fields) = line else { return None };
        let id = fields.remove("id").filter(|id| !id.is_null());
        let method = fields.remove("method");
        let params = fields.remove("params").unwrap_or(Value::Null);
        match (method, id) {
            (Some(Value::String(method)), None) => {
                Some(Self::Message(ServerMessage::Notification { method, params }))
            }
            (Some(Value::String(method)), Some(id @ (Value::String(_) | Value::Number(_)))) => {
                Some(Self::Message(ServerMessage::Request { id: RequestId(id), method, params }))
            }
            (None, Some(id)) => Some(Self::Answer { id: id.as_u64()?, outcome: outcome(fields) }),
            _ => None,
        }
    }
}

fn outcome(mut fields: Map<String, Value>) -> Result<Value, String> {
    let Some(error) = fields.remove("error").filter(|error| !error.is_null()) else {
        return Ok(fields.remove("result").unwrap_or(Value::Null));
    };
    let message = error.get("message").and_then(Value::as_str);
    Err(one_line(&message.map_or_else(|| error.to_string(), str::to_owned), SHOWN))
}

/// Renders a request of this client.
pub(super) fn request(id: u64, method: &str, params: &Value) -> Value {
    json!({"id": id, "method": method, "params": params})
}

/// Renders a notification of this client.
pub(super) fn notification(method: &str) -> Value {
    json!({ "method": method })
}

/// Renders an answer to a request of the app-server: a result, or why it is refused.
pub(super) fn answer(id: &RequestId, outcome: Result<Value, &str>) -> Value {
    match outcome {
        Ok(result) => json!({"id": id.0, "result": result}),
        Err(message) => json!({"id": id.0, "error": {"code": -32_601, "message": message}}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kinds_of_messages_are_told_apart_by_their_fields() {
        let note = IncomingLine::of(json!({"method": "turn/started", "params": {"a": 1}, "emittedAtMs": 5}));
        let expected =
            ServerMessage::Notification { method: "turn/started".to_owned(), params: json!({"a": 1}) };
        assert_eq!(note, Some(IncomingLine::Message(expected)));
        let Some(IncomingLine::Message(ServerMessage::Request { id, params, .. })) =
            IncomingLine::of(json!({"id": "x", "method": "item/fileChange/requestApproval"}))
        else {
            panic!("a request")
        };
        assert_eq!(params, Value::Null);
        assert_eq!(answer(&id, Ok(json!({}))), json!({"id": "x", "result": {}}));
        assert_eq!(
            IncomingLine::of(json!({"id": 3})),
            Some(IncomingLine::Answer { id: 3, outcome: Ok(Value::Null) })
        );
        let refused =
            IncomingLine::of(json!({"id": 3, "error": {"code": -1, "message": "no\u{1b}[2J thread"}}));
        let outcome = Err("no[2J thread".to_owned());
        assert_eq!(refused, Some(IncomingLine::Answer { id: 3, outcome }));
        let strange =
            [json!([]), json!(7), json!({}), json!({"method": 7}), json!({"id": {}, "method": "x"})];
        for line in strange.into_iter().chain([json!({"id": "x"}), json!({"id": -1})]) {
            assert_eq!(IncomingLine::of(line.clone()), None, "{line}");
        }
    }
}
