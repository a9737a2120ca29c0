//! Reads a streamed answer.
//!
//! The deltas are assembled into the message of an equivalent answer without streaming, which is then parsed
//! as such.

use backstitch_core::ports::PolicyAnswer;
use serde_json::{Map, Value, json};

use super::DIALECT;
use super::response::answer;
use crate::answer::{
    Delta, Payload, SseEvent, StreamReader, ThoughtSplitter, body_of, filled_at, merge, text_at,
};
use crate::error::{ProviderError, of_event};
use crate::provider::ModelTarget;

/// Fields of a delta that are pieces of a text.
const JOINED: [&str; 4] = ["content", "refusal", "reasoning_content", "reasoning"];

/// Fields of a delta with a form of their own.
const CALLS: [&str; 3] = ["role", "tool_calls", "function_call"];

/// The known fields of a piece of a call.
const OF_CALL: [&str; 4] = ["index", "id", "type", "function"];

#[derive(Default)]
struct PartialCall {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
    /// Fields that only the server understands, such as signatures.
    others: Map<String, Value>,
}

impl PartialCall {
    /// Adds a piece of a function. Arguments are pieces of a text, or a complete object.
    fn join(&mut self, function: &Value) {
        if self.name.is_empty() {
            self.name = text_at(function, "name").unwrap_or_default().to_owned();
        }
        match &function["arguments"] {
            Value::String(piece) => self.arguments.push_str(piece),
            Value::Null => {}
            whole => self.arguments = whole.to_string(),
        }
    }

    /// The complete call.
    fn into_json(self) -> Value {
        let function = json!({"name": self.name, "arguments": self.arguments});
        let mut call = json!({"id": self.id, "type": "function", "function": function});
        if let Some(fields) = call.as_object_mut() {
            fields.extend(self.others);
        }
        call
    }

    fn is_nameless(&self) -> bool {
        self.id.is_empty() && self.name.is_empty() && self.arguments.is_empty()
    }

    /// Whether a piece with this name and without an id may belong to the call: the call has no name or the
    /// same one, and its arguments are incomplete.
    fn may_continue_as(&self, name: &str) -> bool {
        let is_complete = || serde_json::from_str::<Map<String, Value>>(&self.arguments).is_ok();
        self.name.is_empty() || (self.name == name && !is_complete())
    }
}

/// Returns the piece of a call for the record. A name starts a call.
fn piece_of_call(function: &Value) -> Option<Delta> {
    let mut text = filled_at(function, "name").map(|name| format!("\n{name} ")).unwrap_or_default();
    match &function["arguments"] {
        Value::String(piece) => text.push_str(piece),
        Value::Null => {}
        whole => text.push_str(&whole.to_string()),
    }
    (!text.is_empty()).then_some(Delta::Call(text))
}

/// Reads the events of one answer.
pub(super) struct ChatStream {
    target: ModelTarget,
    message: Map<String, Value>,
    calls: Vec<PartialCall>,
    /// The call in the older form, with at most one call in an answer.
    function: Option<PartialCall>,
    finish_reason: Option<String>,
    usage: Value,
    is_done: bool,
    /// Separates thoughts in the text from the answer.
    thoughts: ThoughtSplitter,
}

impl ChatStream {
    pub(super) fn new(target: ModelTarget) -> Self {
        Self {
            target,
            message: Map::from_iter([
                ("role".to_owned(), "assistant".into()),
                ("content".to_owned(), "".into()),
            ]),
            calls: Vec::new(),
            function: None,
            finish_reason: None,
            usage: Value::Null,
            is_done: false,
            thoughts: ThoughtSplitter::default(),
        }
    }

    /// Adds a piece of a call. The call is identified by index, by id, or only by position; servers repeat
    /// ids, leave out either, or give all calls the index 0.
    fn take_call(&mut self, piece: &Value) {
        let place = self.place_of(piece).unwrap_or_else(|| {
            self.calls.push(PartialCall { index: piece["index"].as_u64(), ..PartialCall::default() });
            self.calls.len() - 1
        });
        let call = &mut self.calls[place];
        if call.id.is_empty() {
            call.id = text_at(piece, "id").unwrap_or_default().to_owned();
        }
        call.join(&piece["function"]);
        for (name, value) in piece.as_object().into_iter().flatten() {
            if !OF_CALL.contains(&name.as_str()) && !value.is_null() {
                merge(call.others.entry(name).or_insert(Value::Null), value);
            }
        }
    }

    /// Adds texts of a list of parts to the text.
    fn take_parts(&mut self, parts: &[Value], deltas: &mut Vec<Delta>) {
        for part in parts {
            if let Some(text) = text_at(part, "text") {
                self.thoughts.push(text, deltas);
                merge(self.message.entry("content").or_insert(Value::Null), &text.into());
            }
            for thought in part["thinking"].as_array().into_iter().flatten() {
                deltas.extend(text_at(thought, "text").map(|text| Delta::Reasoning(text.to_owned())));
            }
        }
    }

    /// The call that a piece continues; `None` when it starts a new one.
    fn place_of(&self, piece: &Value) -> Option<usize> {
        let id = text_at(piece, "id").unwrap_or_default();
        let name = text_at(&piece["function"], "name").unwrap_or_default();
        let index = piece["index"].as_u64();
        let same_index = |call: &PartialCall| call.index == index;
        let latest = match index {
            Some(_) => self.calls.iter().rposition(same_index),
            None => self.calls.len().checked_sub(1),
        };
        if id.is_empty() {
            // Without an id, a piece with a name starts a new call if the previous one cannot continue.
            return latest.filter(|place| name.is_empty() || self.calls[*place].may_continue_as(name));
        }
        let named =
            self.calls.iter().rposition(|call| call.id == id && (index.is_none() || same_index(call)));
        named.or_else(|| {
            // A new id starts a new call, also at a used index. Pieces without a name never do.
            latest.filter(|place| name.is_empty() || self.calls[*place].is_nameless())
        })
    }
}

impl StreamReader for ChatStream {
    fn feed(&mut self, event: &SseEvent, deltas: &mut Vec<Delta>) -> Result<bool, ProviderError> {
        if event.data.trim() == "[DONE]" {
            self.is_done = true;
            self.thoughts.finish(deltas);
            return Ok(true);
        }
        let chunk: Value = body_of(&event.data, &self.target)?;
        if !chunk["error"].is_null() {
            return Err(of_event(self.target.provider, DIALECT.classify, &chunk));
        }
        if !chunk["usage"].is_null() {
            self.usage = chunk["usage"].clone();
        }
        let Some(choice) = chunk["choices"].get(0) else { return Ok(self.is_done) };
        if let Some(reason) = text_at(choice, "finish_reason") {
            self.finish_reason = Some(reason.to_owned());
        }
        let delta = &choice["delta"];
        for (name, value) in delta.as_object().into_iter().flatten() {
            match (name.as_str(), value) {
                (name, _) if CALLS.contains(&name) => {}
                (_, Value::Null) => {}
                ("content", Value::String(piece)) => self.thoughts.push(piece, deltas),
                ("refusal", Value::String(piece)) if !piece.is_empty() => {
                    deltas.push(Delta::Text(piece.clone()));
                }
                ("reasoning" | "reasoning_content", Value::String(piece)) if !piece.is_empty() => {
                    deltas.push(Delta::Reasoning(piece.clone()));
                }
                // Some servers send parts of texts and of thoughts.
                ("content", Value::Array(parts)) => self.take_parts(parts, deltas),
                _ => {}
            }
            let is_text = JOINED.contains(&name.as_str());
            let is_sound = if is_text { value.is_string() } else { !value.is_null() };
            if is_sound && !CALLS.contains(&name.as_str()) {
                merge(self.message.entry(name).or_insert(Value::Null), value);
            }
        }
        if delta["function_call"].is_object() {
            deltas.extend(piece_of_call(&delta["function_call"]));
            self.function.get_or_insert_default().join(&delta["function_call"]);
        }
        for piece in delta["tool_calls"].as_array().into_iter().flatten() {
            deltas.extend(piece_of_call(&piece["function"]));
            self.take_call(piece);
        }
        // Some compatible servers omit the end mark.
        if self.finish_reason.is_some() {
            self.thoughts.finish(deltas);
        }
        Ok(self.is_done)
    }

    fn finish(self: Box<Self>) -> Result<PolicyAnswer, ProviderError> {
        // Some compatible servers omit the end mark, but not the finish reason.
        if !self.is_done && self.finish_reason.is_none() {
            return Err(ProviderError::cut_stream(self.target.provider));
        }
        let mut message = self.message;
        if !self.calls.is_empty() {
            let calls = self.calls.into_iter().map(PartialCall::into_json);
            message.insert("tool_calls".to_owned(), calls.collect());
        }
        if let Some(call) = self.function {
            let function = json!({"name": call.name, "arguments": call.arguments});
            message.insert("function_call".to_owned(), function);
        }
        let payload = Payload::write(Value::Object(message), &self.target)?;
        DIALECT.usage.charge(&self.usage, answer(&payload, self.finish_reason.as_deref(), &self.target))
    }
}
