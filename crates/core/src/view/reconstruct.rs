//! Conversion of a conversation back to a transcript.
//!
//! A [`ConversationState`] that this program exported results in the very messages it was made from. One that
//! another program wrote has only the plain fields, and is converted to messages with the same content.

use std::sync::Arc;

use serde_json::Value;

use super::call::CallStatus;
use super::conversation::{ConversationMessage, ConversationState, ConversationTurn};
use super::transcript::ToolCallRecord;
use crate::extra::Extra;
use crate::id::derived;
use crate::journal::{InnerMessage, Role};
use crate::message::{
    Arguments, Content, Message, OptionCall, OptionResult, Part, PolicyName, RoleHint, TextPart,
};

impl ConversationState {
    /// Returns the messages of the conversation in order, each at its place.
    pub fn inner_messages(&self) -> Vec<Arc<InnerMessage>> {
        let mut rebuilt = TranscriptBuilder { state: self, messages: Vec::new(), turn: 0 };
        if let Some(system) = &self.system_message {
            rebuilt.say(system, &[]);
        }
        for turn in &self.turns {
            rebuilt.turn(turn);
        }
        for message in &self.unanswered {
            rebuilt.say(message, &[]);
        }
        let mut messages = rebuilt.messages;
        // Conversations list results in the order of their calls; transcripts hold them in the order of
        // arrival.
        if messages.iter().all(|(_, kept)| *kept) {
            messages.sort_by_key(|(message, _)| message.sequence);
            return messages.into_iter().map(|(message, _)| message).collect();
        }
        let numbered = messages.into_iter().zip(0..);
        numbered
            .map(|((message, _), sequence)| {
                if message.sequence == sequence {
                    message
                } else {
                    Arc::new(InnerMessage { sequence, ..InnerMessage::clone(&message) })
                }
            })
            .collect()
    }
}

struct TranscriptBuilder<'a> {
    state: &'a ConversationState,
    /// Each message, and whether it is the original one that the conversation was made from.
    messages: Vec<(Arc<InnerMessage>, bool)>,
    /// Number of the last response.
    turn: u64,
}

impl TranscriptBuilder<'_> {
    fn turn(&mut self, turn: &ConversationTurn) {
        for message in &turn.user_messages {
            self.say(message, &[]);
        }
        // Numbers that do not increase would put two responses into one turn.
        self.turn = turn.turn_number.max(self.turn.saturating_add(1));
        let (calls, first) = (&turn.assistant_message.tool_calls, self.messages.len());
        self.say(&turn.assistant_message, calls);
        if turn.assistant_message.inner.is_empty()
            && let Some((message, _)) = self.messages.get_mut(first)
        {
            Arc::make_mut(message).provider = turn.provider_payload.clone().map(Box::new);
        }
        for message in &turn.tool_messages {
            self.say(message, calls);
        }
    }

    fn say(&mut self, entry: &ConversationMessage, calls: &[ToolCallRecord]) {
        if !entry.inner.is_empty() {
            self.messages.extend(entry.inner.iter().map(|message| (message.clone(), true)));
            return;
        }
        for (index, message) in plain_messages(entry, self.turn, calls).into_iter().enumerate() {
            let message_id = match index {
                0 => entry.message_id,
                _ => derived(entry.message_id.as_uuid(), &index.to_string()),
            };
            let inner = InnerMessage {
                message_id,
                evaluation_id: self.state.evaluation_id,
                sequence: self.messages.len() as u64,
                turn: self.turn,
                prompt_ns: self.state.prompt_ns.clone(),
                prompt_key: self.state.prompt_key.clone(),
                created_at: entry.created_at,
                message,
                role: Some(entry.role),
                provider: None,
                extra: Extra::default(),
            };
            self.messages.push((Arc::new(inner), false));
        }
    }
}

/// Returns messages with the content of a plain conversation message.
fn plain_messages(entry: &ConversationMessage, turn: u64, calls: &[ToolCallRecord]) -> Vec<Message> {
    // A message before a response belongs to the step of that response.
    let step = match entry.role {
        Role::System | Role::User => turn.saturating_add(1),
        Role::Assistant | Role::Tool => turn,
    };
    let name = entry.name.as_deref();
    let message = |hint, speaker, content| Message {
        role_hint_for_llm: Some(hint),
        step_num: Some(step),
        ..Message::new(speaker, content)
    };
    let text = |hint, speaker| {
        let parts = vec![Part::Text(TextPart::new(entry.content.as_str()))];
        message(hint, speaker, Content::Parts(parts.into()))
    };
    match entry.role {
        Role::System => vec![text(RoleHint::System, speaker([name, Some("prompt")]))],
        Role::User => vec![text(RoleHint::User, speaker([name, Some("user")]))],
        Role::Assistant => {
            let policy = || speaker([name, Some("assistant")]);
            let spoken =
                (!entry.content.is_empty() || calls.is_empty()).then(|| text(RoleHint::Assistant, policy()));
            let calls = calls.iter().map(|call| {
                let arguments = Arguments::from_text(call.arguments.as_str());
                let foreign = call.foreign_id.clone();
                let mut call = OptionCall::new(call.call_id, call.name.as_str(), arguments);
                call.provider_call_id = foreign;
                message(RoleHint::Assistant, policy(), Content::OptionCall(call))
            });
            spoken.into_iter().chain(calls).collect()
        }
        Role::Tool => {
            let answered = calls.iter().find(|call| Some(call.call_id) == entry.tool_call_id);
            // A result without a call is kept as a plain message, since a result must have a call.
            let Some(answered) = answered else {
                return vec![text(RoleHint::Tool, speaker([name, Some("tool")]))];
            };
            let option = answered.name.as_str();
            let mut result = OptionResult::new(answered.call_id, option, entry.content.as_str().into());
            if answered.status == CallStatus::Failed {
                result.result = Value::Null.into();
                result.is_error = true;
                result.error_message = Some(entry.content.clone());
            }
            vec![message(
                RoleHint::Tool,
                speaker([Some(option), Some("tool")]),
                Content::OptionResult(result),
            )]
        }
    }
}

/// Returns the first name that is valid for a policy, or else that of the runtime. Reserved names are not
/// valid.
fn speaker(names: [Option<&str>; 2]) -> PolicyName {
    let mut names = names.into_iter().flatten().filter_map(|name| PolicyName::new(name).ok());
    names.next().unwrap_or_else(PolicyName::runtime)
}
