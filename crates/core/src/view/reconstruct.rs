//! From a conversation back to a transcript.
//!
//! A [`ConversationState`] that this program exported gives back the very messages it was made from. One that holds only
//! the plain fields, because something else wrote it, is turned into messages that say the same.

use std::sync::Arc;

use super::call::CallStatus;
use super::conversation::{ConversationMessage, ConversationState, ConversationTurn};
use super::transcript::ToolCallRecord;
use crate::extra::Extra;
use crate::id::derived;
use crate::journal::{InnerMessage, Role};
use crate::message::{
    Arguments, Content, Message, OptionCall, OptionResult, Part, Parts, PolicyName, RoleHint, TextPart,
};

impl ConversationState {
    /// The messages of the conversation in order, each at its place.
    pub fn inner_messages(&self) -> Vec<Arc<InnerMessage>> {
        let mut rebuilt = Rebuilt { state: self, messages: Vec::new() };
        if let Some(system) = &self.system_message {
            rebuilt.say(system, 0, &[]);
        }
        for turn in &self.turns {
            rebuilt.turn(turn);
        }
        let turns = self.turns.last().map_or(0, |turn| turn.turn_number);
        for message in &self.unanswered {
            rebuilt.say(message, turns, &[]);
        }
        let mut messages = rebuilt.messages;
        // Results are shown in the order of their calls, but stand in the order in which they came.
        if messages.iter().all(|(_, kept)| *kept) {
            messages.sort_by_key(|(message, _)| message.sequence);
            return messages.into_iter().map(|(message, _)| message).collect();
        }
        let numbered = messages.into_iter().zip(0..);
        numbered
            .map(|((message, _), sequence)| match message.sequence == sequence {
                true => message,
                false => Arc::new(InnerMessage { sequence, ..InnerMessage::clone(&message) }),
            })
            .collect()
    }
}

struct Rebuilt<'a> {
    state: &'a ConversationState,
    /// Each message, and whether it is the very one that the conversation was made from.
    messages: Vec<(Arc<InnerMessage>, bool)>,
}

impl Rebuilt<'_> {
    fn turn(&mut self, turn: &ConversationTurn) {
        for message in &turn.user_messages {
            self.say(message, turn.turn_number.saturating_sub(1), &[]);
        }
        let calls = &turn.assistant_message.tool_calls;
        self.say(&turn.assistant_message, turn.turn_number, calls);
        if turn.assistant_message.inner.is_empty()
            && let Some(provider) = &turn.provider_payload
        {
            let first = self.messages.iter_mut().find(|(message, _)| message.turn == turn.turn_number);
            if let Some((message, _)) = first {
                Arc::make_mut(message).provider = Some(provider.clone());
            }
        }
        for message in &turn.tool_messages {
            self.say(message, turn.turn_number, calls);
        }
    }

    fn say(&mut self, said: &ConversationMessage, turn: u64, calls: &[ToolCallRecord]) {
        if !said.inner.is_empty() {
            self.messages.extend(said.inner.iter().map(|message| (message.clone(), true)));
            return;
        }
        for (index, message) in plain_messages(said, turn, calls).into_iter().enumerate() {
            let message_id = match index {
                0 => said.message_id,
                _ => derived(said.message_id.as_uuid(), &index.to_string()),
            };
            let inner = InnerMessage {
                message_id,
                evaluation_id: self.state.evaluation_id,
                sequence: self.messages.len() as u64,
                turn,
                prompt_ns: self.state.prompt_ns.clone(),
                prompt_key: self.state.prompt_key.clone(),
                created_at: said.created_at,
                message,
                provider: None,
                extra: Extra::default(),
            };
            self.messages.push((Arc::new(inner), false));
        }
    }
}

/// The messages that say what a plain conversation message says.
fn plain_messages(said: &ConversationMessage, turn: u64, calls: &[ToolCallRecord]) -> Vec<Message> {
    let message = |hint, content| Message {
        role_hint_for_llm: Some(hint),
        step_num: Some(turn),
        ..Message::new(speaker(said), content)
    };
    let text = |hint| {
        let parts = vec![Part::Text(TextPart::new(said.content.as_str()))];
        message(hint, Content::Parts(Parts { parts, extra: Extra::default() }))
    };
    match said.role {
        Role::System => vec![text(RoleHint::System)],
        Role::User => vec![text(RoleHint::User)],
        Role::Assistant => {
            let spoken = (!said.content.is_empty() || calls.is_empty()).then(|| text(RoleHint::Assistant));
            let calls = calls.iter().map(|call| {
                let arguments = Arguments::from_text(call.arguments.as_str());
                let call = OptionCall::new(call.call_id, call.name.as_str(), arguments);
                message(RoleHint::Assistant, Content::OptionCall(call))
            });
            spoken.into_iter().chain(calls).collect()
        }
        Role::Tool => {
            let answered = calls.iter().find(|call| Some(call.call_id) == said.tool_call_id);
            // A result without a call is kept as what was said, since a result must have one.
            let Some(answered) = answered else { return vec![text(RoleHint::Tool)] };
            let content = said.content.clone();
            let mut result = OptionResult::new(answered.call_id, answered.name.as_str(), content.into());
            if answered.status == CallStatus::Failed {
                result.is_error = true;
                result.error_message = Some(said.content.clone());
            }
            vec![message(RoleHint::Tool, Content::OptionResult(result))]
        }
    }
}

fn speaker(said: &ConversationMessage) -> PolicyName {
    let name = said.name.as_deref().unwrap_or(match said.role {
        Role::System => "prompt",
        Role::Assistant => "assistant",
        Role::User => "user",
        Role::Tool => "tool",
    });
    PolicyName::new(name).unwrap_or_else(|_| PolicyName::runtime())
}
