//! Conversations from other programs.
//!
//! In other programs the id of a call may be any text. Such an id is mapped to one of ours, derived from the
//! conversation's origin and the text, so that decoding is deterministic; the text is kept in addition. A
//! conversation that holds the messages it was made from must agree with them: an edit of the plain fields
//! alone is refused.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::conversation::{ConversationMessage, ConversationState, spoken_text};
use crate::id::{CallId, EvaluationId, SessionId};
use crate::journal::Role;
use crate::session::SnapshotRestoreError;

impl Serialize for ConversationState {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Self::serialize(self, serializer)
    }
}

impl<'de> Deserialize<'de> for ConversationState {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut value = Value::deserialize(deserializer)?;
        if let Some(origin) = origin(&value) {
            map_ids(&mut value, origin);
        }
        Self::deserialize(value).map_err(serde::de::Error::custom)
    }
}

/// Returns the session from which the ids of calls are derived.
fn origin(conversation: &Value) -> Option<SessionId> {
    let session = conversation.get("provenance").and_then(|provenance| provenance.get("session"));
    if let Some(session) = session {
        return session.as_str()?.parse().ok();
    }
    let evaluation: EvaluationId = conversation.get("evaluation_id")?.as_str()?.parse().ok()?;
    Some(SessionId::from_uuid(*evaluation.as_uuid()))
}

fn map_ids(conversation: &mut Value, origin: SessionId) {
    let mut messages: Vec<&mut Value> = Vec::new();
    let Some(conversation) = conversation.as_object_mut() else { return };
    for (field, value) in conversation.iter_mut() {
        match field.as_str() {
            "unanswered" => messages.extend(value.as_array_mut().into_iter().flatten()),
            "turns" => {
                let turns = value.as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut);
                for (field, value) in turns.flatten() {
                    match field.as_str() {
                        "assistant_message" => messages.push(value),
                        "user_messages" | "tool_messages" => {
                            messages.extend(value.as_array_mut().into_iter().flatten());
                        }
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    for message in messages {
        if let Some(id) = message.get_mut("tool_call_id") {
            map_id(id, origin);
        }
        let calls = message.get_mut("tool_calls").and_then(Value::as_array_mut);
        for call in calls.into_iter().flatten() {
            let foreign = call.get_mut("call_id").and_then(|id| map_id(id, origin));
            if let (Some(foreign), Some(call)) = (foreign, call.as_object_mut()) {
                call.insert("foreign_id".to_owned(), Value::String(foreign));
            }
        }
    }
}

/// Maps a foreign id, and returns the original.
fn map_id(id: &mut Value, origin: SessionId) -> Option<String> {
    let Value::String(text) = id else { return None };
    if text.parse::<CallId>().is_ok() {
        return None;
    }
    let ours = CallId::of_foreign(origin, text).to_string();
    Some(std::mem::replace(text, ours))
}

impl ConversationState {
    /// Refuses a conversation whose plain fields contradict the messages that it was made from.
    pub fn check(&self) -> Result<(), SnapshotRestoreError> {
        let turns = self.turns.iter().flat_map(|turn| {
            turn.user_messages.iter().chain([&turn.assistant_message]).chain(&turn.tool_messages)
        });
        for message in self.system_message.iter().chain(turns).chain(&self.unanswered) {
            if let Some(field) = self.disagreement(message) {
                return Err(SnapshotRestoreError::Disagreement { message: message.message_id, field });
            }
        }
        Ok(())
    }

    /// Returns the first field of a message that contradicts the messages it was made from.
    fn disagreement(&self, entry: &ConversationMessage) -> Option<&'static str> {
        let first = entry.inner.first()?;
        let calls = entry.inner.iter().filter_map(|message| message.message.option_call());
        let calls = calls.map(|call| (call.invocation_id, call.option_name.as_str(), call.arguments.text()));
        let plain = entry.tool_calls.iter();
        let plain = plain.map(|call| (call.call_id, call.name.as_str(), call.arguments.as_str().into()));
        let belongs = |message: &crate::journal::InnerMessage| {
            message.evaluation_id == self.evaluation_id
                && message.prompt_ns == self.prompt_ns
                && message.prompt_key == self.prompt_key
        };
        let agrees = [
            ("role", entry.inner.iter().all(|message| message.role() == entry.role)),
            ("content", spoken_text(&entry.inner) == entry.content),
            // Only an answer lists its calls.
            ("tool_calls", entry.role != Role::Assistant || calls.eq(plain)),
            ("tool_call_id", first.tool_call_id() == entry.tool_call_id),
            ("name", entry.name.is_none() || first.tool_name() == entry.name.as_deref()),
            ("evaluation_id", entry.inner.iter().all(|message| belongs(message))),
        ];
        agrees.into_iter().find(|(_, agrees)| !agrees).map(|(field, _)| field)
    }
}
