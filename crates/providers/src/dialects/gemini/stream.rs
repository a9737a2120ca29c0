//! Reads a streamed answer.
//!
//! Every event is an answer of its own with more parts. Adjacent texts are joined if both are thoughts or
//! neither is, and if they have no signature.

use backstitch_core::ports::PolicyAnswer;
use serde_json::Value;

use super::DIALECT;
use super::response::{End, answer};
use crate::answer::{Delta, Payload, SseEvent, StreamReader, body_of, filled_at, text_at};
use crate::error::{ProviderError, of_event};
use crate::provider::ModelTarget;

/// Reads the events of one answer.
pub(super) struct GeminiStream {
    target: ModelTarget,
    parts: Vec<Value>,
    end: End,
}

impl GeminiStream {
    pub(super) fn new(target: ModelTarget) -> Self {
        Self { target, parts: Vec::new(), end: End::default() }
    }

    fn take_part(&mut self, part: &Value, deltas: &mut Vec<Delta>) {
        if let Some(text) = filled_at(part, "text") {
            deltas.push(if part["thought"] == true {
                Delta::Reasoning(text.to_owned())
            } else {
                Delta::Text(text.to_owned())
            });
            if let Some(last) = self.parts.last_mut()
                && is_plain(last)
                && is_plain(part)
                && last["thought"] == part["thought"]
                && let Some(Value::String(whole)) = last.get_mut("text")
            {
                whole.push_str(text);
                return;
            }
        }
        if let Some(name) = filled_at(&part["functionCall"], "name") {
            deltas.push(Delta::Call(format!("\n{name} {}", part["functionCall"]["args"])));
        }
        self.parts.push(part.clone());
    }
}

/// Whether a part has no fields besides its text and the thought flag.
fn is_plain(part: &Value) -> bool {
    let only = |fields: &serde_json::Map<String, Value>| {
        fields.keys().all(|name| name == "text" || name == "thought") && fields.contains_key("text")
    };
    part.as_object().is_some_and(only)
}

impl StreamReader for GeminiStream {
    fn feed(&mut self, event: &SseEvent, deltas: &mut Vec<Delta>) -> Result<bool, ProviderError> {
        let data: Value = body_of(&event.data, &self.target)?;
        let data = data.get(0).unwrap_or(&data);
        if !data["error"].is_null() {
            return Err(of_event(self.target.provider, DIALECT.classify, data));
        }
        if !data["promptFeedback"].is_null() {
            self.end.prompt_feedback = data["promptFeedback"].clone();
        }
        if !data["usageMetadata"].is_null() {
            self.end.usage = data["usageMetadata"].clone();
        }
        let candidate = &data["candidates"][0];
        for part in candidate["content"]["parts"].as_array().into_iter().flatten() {
            self.take_part(part, deltas);
        }
        if let Some(reason) = text_at(candidate, "finishReason") {
            self.end.finish_reason = Some(reason.to_owned());
            self.end.finish_message = text_at(candidate, "finishMessage").map(str::to_owned);
        }
        // More events may follow the finish reason, so only the end of the stream ends the answer.
        Ok(false)
    }

    fn finish(self: Box<Self>) -> Result<PolicyAnswer, ProviderError> {
        let was_blocked = self.end.prompt_feedback.get("blockReason").is_some();
        if self.end.finish_reason.is_none() && !was_blocked {
            return Err(ProviderError::cut_stream(self.target.provider));
        }
        let payload = Payload::write(Value::Array(self.parts), &self.target)?;
        DIALECT.usage.charge(&self.end.usage, answer(&payload, &self.end, &self.target))
    }
}
