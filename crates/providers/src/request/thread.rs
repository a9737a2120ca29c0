//! The conversation as every dialect sees it: messages to the model, and turns with their calls and results.
//!
//! A [`Thread`] borrows from recorded messages and is independent of providers. Each call appears once, in
//! the turn that made it, with its result, wherever the transcript holds that; results are in the order of
//! the calls.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use backstitch_core::id::CallId;
use backstitch_core::journal::{InnerMessage, ProviderSidecar, Role};
use backstitch_core::machine::TurnNumbers;
use backstitch_core::message::{OptionCall, OptionResult, Part};

/// A conversation, ready to be rendered.
#[derive(Debug, Clone, Default)]
pub struct Thread<'a> {
    /// The system message.
    pub system: Vec<&'a Part>,
    /// The messages and turns after it, in order.
    pub entries: Vec<ThreadEntry<'a>>,
    /// Results without a call.
    pub orphans: Vec<CallId>,
}

/// One step of a conversation.
#[derive(Debug, Clone)]
pub enum ThreadEntry<'a> {
    /// A message to the model.
    Input(InputMessage<'a>),
    /// An answer of the model.
    Turn(ThreadTurn<'a>),
}

/// A message to the model.
#[derive(Debug, Clone, Default)]
pub struct InputMessage<'a> {
    /// Whether the prompt is the author, and not a person.
    pub is_system: bool,
    /// The content.
    pub parts: Vec<&'a Part>,
}

/// An answer of the model.
#[derive(Debug, Clone, Default)]
pub struct ThreadTurn<'a> {
    /// The number in the conversation.
    pub number: u64,
    /// The content.
    pub parts: Vec<&'a Part>,
    /// The calls, in order.
    pub calls: Vec<ThreadCall<'a>>,
    /// Data that only the provider understands.
    pub sidecar: Option<&'a ProviderSidecar>,
}

/// A call and its result.
#[derive(Debug, Clone, Copy)]
pub struct ThreadCall<'a> {
    /// The call.
    pub call: &'a OptionCall,
    /// The result, if there is one.
    pub result: Option<&'a OptionResult>,
}

impl<'a> Thread<'a> {
    /// Groups messages into a thread: those of one evaluation, in order, after those of the evaluations that
    /// it follows. Nothing is copied.
    ///
    /// To render a foreign [`ConversationState`](backstitch_core::view::ConversationState), use its messages:
    ///
    /// ```
    /// # use backstitch_providers::Thread;
    /// # fn turns(state: &backstitch_core::view::ConversationState) -> usize {
    /// let messages = state.inner_messages();
    /// let thread = Thread::of(&messages);
    /// # thread.entries.len()
    /// # }
    /// ```
    pub fn of(messages: impl IntoIterator<Item = &'a Arc<InnerMessage>>) -> Self {
        let mut messages = messages.into_iter().peekable();
        let system = messages.next_if(|message| message.role() == Role::System);
        let system = system.into_iter().flat_map(|message| parts_of(message)).collect();
        Self { system, ..Self::after(&mut TurnNumbers::default(), messages) }
    }

    /// Groups the messages after those that are numbered already, without a system message.
    pub(crate) fn after(
        numbers: &mut TurnNumbers,
        messages: impl IntoIterator<Item = &'a Arc<InnerMessage>>,
    ) -> Self {
        let mut thread = Self::default();
        let (turns, unanswered) = group_by_turn(numbers, messages.into_iter().map(|message| &**message));
        let in_turns = turns.iter().flat_map(|turn| turn.before.iter().chain(&turn.messages));
        let in_order = in_turns.chain(&unanswered).copied();
        let mut results: HashMap<CallId, &OptionResult> = HashMap::new();
        for result in in_order.filter_map(|message| message.message.option_result()) {
            results.entry(result.invocation_id).or_insert(result);
        }
        let mut called = HashSet::new();
        for group in &turns {
            thread.say_all(&group.before);
            let mut turn = ThreadTurn { number: group.number, ..ThreadTurn::default() };
            let (spoken, others): (Vec<_>, Vec<_>) =
                group.messages.iter().partition(|message| message.role() == Role::Assistant);
            for message in spoken {
                turn.parts.extend(parts_of(message));
                turn.sidecar = turn.sidecar.or(message.provider.as_deref());
                if let Some(call) = message.message.option_call()
                    && called.insert(call.invocation_id)
                {
                    turn.calls.push(ThreadCall { call, result: results.get(&call.invocation_id).copied() });
                }
            }
            thread.entries.push(ThreadEntry::Turn(turn));
            // Other messages between the results follow the turn.
            thread.say_all(&others);
        }
        thread.say_all(&unanswered);
        thread.orphans = results.into_keys().filter(|call| !called.contains(call)).collect();
        thread.orphans.sort();
        thread
    }

    fn say_all(&mut self, messages: &[&'a InnerMessage]) {
        for message in messages {
            let parts: Vec<&Part> = parts_of(message).iter().collect();
            if !parts.is_empty() {
                self.entries.push(ThreadEntry::Input(InputMessage {
                    is_system: message.role() == Role::System,
                    parts,
                }));
            }
        }
    }
}

/// An answer and the messages that belong to it.
struct TurnGroup<'a> {
    number: u64,
    /// The messages between the previous turn and this one.
    before: Vec<&'a InnerMessage>,
    /// The answer and the results of its calls.
    messages: Vec<&'a InnerMessage>,
}

/// Groups messages by turn number and not by adjacency, since a result may come after a user message or even after
/// the next answer. A result without an answer counts as an ordinary message. Also returns the messages after the
/// last turn.
fn group_by_turn<'a>(
    numbers: &mut TurnNumbers,
    messages: impl Iterator<Item = &'a InnerMessage>,
) -> (Vec<TurnGroup<'a>>, Vec<&'a InnerMessage>) {
    let messages: Vec<_> = messages.map(|message| (numbers.number(message), message)).collect();
    let answers = messages.iter().filter(|(_, message)| message.role() == Role::Assistant);
    let mut turns: BTreeMap<u64, Vec<&InnerMessage>> =
        answers.map(|(number, _)| (*number, Vec::new())).collect();
    let mut inputs = Vec::new();
    for (number, message) in messages {
        match (message.role(), turns.get_mut(&number)) {
            (Role::Assistant | Role::Tool, Some(turn)) => turn.push(message),
            _ => inputs.push((number, message)),
        }
    }
    let mut inputs = inputs.into_iter().peekable();
    let turns = turns.into_iter().map(|(number, messages)| {
        let before = std::iter::from_fn(|| inputs.next_if(|(at, _)| *at < number));
        TurnGroup { number, before: before.map(|(_, message)| message).collect(), messages }
    });
    let turns = turns.collect();
    (turns, inputs.map(|(_, message)| message).collect())
}

fn parts_of(message: &InnerMessage) -> &[Part] {
    message.message.parts().unwrap_or_default()
}
