//! The conversation as every adapter sees it: what was said, and turns with their calls and results.
//!
//! A [`Thread`] borrows from a [`ConversationState`] and knows no provider. Each call stands once, in the turn that made it,
//! with its result beside it wherever in the transcript that was recorded; results are in the order of the calls.

use std::collections::{HashMap, HashSet};

use backstitch_core::id::CallId;
use backstitch_core::journal::{InnerMessage, ProviderSidecar, Role};
use backstitch_core::message::{Content, OptionCall, OptionResult, Part};
use backstitch_core::view::{ConversationMessage, ConversationState};

/// A conversation, ready to be rendered.
#[derive(Debug, Clone, Default)]
pub struct Thread<'a> {
    /// The system message.
    pub system: Vec<&'a Part>,
    /// What followed, in order.
    pub entries: Vec<Entry<'a>>,
    /// Results that no call asked for.
    pub orphans: Vec<CallId>,
}

/// One step of a conversation.
#[derive(Debug, Clone)]
pub enum Entry<'a> {
    /// Somebody said something to the model.
    Said(Said<'a>),
    /// The model answered.
    Turn(Turn<'a>),
}

/// Something that was said to the model.
#[derive(Debug, Clone, Default)]
pub struct Said<'a> {
    /// Whether the prompt says it, and not a person.
    pub is_system: bool,
    /// What was said.
    pub parts: Vec<&'a Part>,
}

/// An answer of the model.
#[derive(Debug, Clone, Default)]
pub struct Turn<'a> {
    /// Its number.
    pub number: u64,
    /// Its words.
    pub parts: Vec<&'a Part>,
    /// Its calls.
    pub calls: Vec<Call<'a>>,
    /// What only its provider understands.
    pub sidecar: Option<&'a ProviderSidecar>,
}

/// A call and what came of it.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    /// The call.
    pub call: &'a OptionCall,
    /// Its result, when there is one.
    pub result: Option<&'a OptionResult>,
}

impl<'a> Thread<'a> {
    /// The thread of a conversation.
    pub fn of(state: &'a ConversationState) -> Self {
        let mut thread = Self::default();
        if let Some(system) = &state.system_message {
            thread.system = parts_of(system);
        }
        let mut results: HashMap<CallId, &OptionResult> = HashMap::new();
        let mut answers = Vec::new();
        for turn in &state.turns {
            answers.extend(turn.user_messages.iter().chain(&turn.tool_messages));
        }
        answers.extend(&state.unanswered);
        for result in
            answers.into_iter().flat_map(inner).filter_map(|message| message.message.option_result())
        {
            results.entry(result.invocation_id).or_insert(result);
        }
        let mut called = HashSet::new();
        for turn in &state.turns {
            thread.say_all(&turn.user_messages);
            let spoken = &turn.assistant_message;
            let mut answer = Turn {
                number: turn.turn_number,
                parts: parts_of(spoken),
                calls: Vec::new(),
                sidecar: turn.provider_payload.as_ref(),
            };
            for call in inner(spoken).filter_map(|message| message.message.option_call()) {
                if called.insert(call.invocation_id) {
                    answer.calls.push(Call { call, result: results.get(&call.invocation_id).copied() });
                }
            }
            thread.entries.push(Entry::Turn(answer));
            // Words that stand where results do are not results; they are said after them.
            thread.say_all(&turn.tool_messages);
        }
        thread.say_all(&state.unanswered);
        thread.orphans = results.into_keys().filter(|call| !called.contains(call)).collect();
        thread.orphans.sort();
        thread
    }

    fn say_all(&mut self, messages: &'a [ConversationMessage]) {
        for message in messages {
            let parts = parts_of(message);
            if !parts.is_empty() {
                self.entries.push(Entry::Said(Said { is_system: message.role == Role::System, parts }));
            }
        }
    }
}

fn inner(message: &ConversationMessage) -> impl Iterator<Item = &InnerMessage> {
    message.inner.iter().map(|inner| &**inner)
}

fn parts_of(message: &ConversationMessage) -> Vec<&Part> {
    let contents = inner(message).map(|inner| &inner.message.content);
    let parts = contents.filter_map(|content| match content {
        Content::Parts(content) => Some(&content.parts),
        Content::OptionCall(_) | Content::OptionResult(_) => None,
    });
    parts.flatten().collect()
}
