//! The transcript grouped by turn.
//!
//! A [`ConversationState`] is one evaluation as a conversation: the system message, and a [`ConversationTurn`] for each
//! response with the user messages before it, the calls in it and their results in the order of the calls. It is an export:
//! as JSON it can be kept by people with their own storage, and an evaluation can be resumed from it without a store.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::transcript::{ToolCallRecord, Transcript, calls};
use crate::id::{CallId, EvaluationId, MessageId, SnapshotId, derived};
use crate::journal::{InnerMessage, ProviderSidecar, Role};
use crate::time::Timestamp;

/// One message of a conversation, as providers count them: an assistant's text and calls are one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConversationMessage {
    /// Who speaks.
    pub role: Role,
    /// The text.
    pub content: String,
    /// The calls that an assistant makes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCallRecord>,
    /// The call that a tool answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<CallId>,
    /// The tool that answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// When it was made.
    pub created_at: Timestamp,
    /// Names the message.
    pub message_id: MessageId,
    /// The messages that it was made from, so that nothing of them is lost: media, errors, steps.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inner: Vec<Arc<InnerMessage>>,
}

/// A provider's response, what came before it and what came of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConversationTurn {
    /// The number of the response, from 1.
    pub turn_number: u64,
    /// What was said to the assistant since the turn before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub user_messages: Vec<ConversationMessage>,
    /// The response.
    pub assistant_message: ConversationMessage,
    /// The results of its calls that are there, in the order of the calls.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_messages: Vec<ConversationMessage>,
    /// The part of the response that only its provider understands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_payload: Option<ProviderSidecar>,
    /// The evaluation.
    pub evaluation_id: EvaluationId,
    /// When the response was recorded.
    pub created_at: Timestamp,
}

/// One evaluation as a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConversationState {
    /// The evaluation.
    pub evaluation_id: EvaluationId,
    /// The namespace of the prompt.
    pub prompt_ns: String,
    /// The key of the prompt.
    pub prompt_key: String,
    /// The rendered prompt. Evaluations that no prompt drives have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_message: Option<ConversationMessage>,
    /// The turns, in order.
    #[serde(default)]
    pub turns: Vec<ConversationTurn>,
    /// What was said since the last turn and is not answered yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unanswered: Vec<ConversationMessage>,
    /// When the evaluation began.
    pub created_at: Timestamp,
    /// Names this state of the conversation: the same messages give the same id.
    pub state_id: SnapshotId,
}

impl Transcript {
    /// One evaluation as a conversation; `None` when it has no messages.
    pub fn conversation(&self, evaluation: EvaluationId) -> Option<ConversationState> {
        let messages = self.inner_messages(evaluation);
        let (first, last) = (messages.first()?, messages.last()?);
        let mut state = ConversationState {
            evaluation_id: evaluation,
            prompt_ns: first.prompt_ns.clone(),
            prompt_key: first.prompt_key.clone(),
            system_message: None,
            turns: Vec::new(),
            unanswered: Vec::new(),
            created_at: first.created_at,
            state_id: derived(last.message_id.as_uuid(), &format!("conversation {}", messages.len())),
        };
        let mut rest = messages.as_slice();
        if first.role() == Role::System {
            state.system_message = Some(single(first));
            rest = &rest[1..];
        }
        // An answer's messages may be followed by user messages before all results of its turn are there, so grouping goes
        // by turn number and not by neighbourhood.
        let (answers, said): (Vec<_>, Vec<_>) =
            rest.iter().cloned().partition(|message| matches!(message.role(), Role::Assistant | Role::Tool));
        let mut said = said.into_iter().peekable();
        for turn in answers.chunk_by(|one, other| one.turn == other.turn) {
            let turn_number = turn[0].turn;
            let before = std::iter::from_fn(|| said.next_if(|message| message.turn < turn_number));
            let user_messages = before.map(|message| single(&message)).collect();
            if let Some(turn) = grouped(evaluation, user_messages, turn) {
                state.turns.push(turn);
            }
        }
        state.unanswered = said.map(|message| single(&message)).collect();
        Some(state)
    }
}

fn grouped(
    evaluation_id: EvaluationId,
    user_messages: Vec<ConversationMessage>,
    messages: &[Arc<InnerMessage>],
) -> Option<ConversationTurn> {
    let (spoken, results): (Vec<_>, Vec<_>) =
        messages.iter().cloned().partition(|message| message.role() == Role::Assistant);
    let first = spoken.first()?;
    let tool_calls = calls(messages);
    let place = |message: &InnerMessage| {
        tool_calls.iter().position(|call| Some(call.call_id) == message.tool_call_id())
    };
    let mut tool_messages: Vec<_> = results.iter().map(|message| (place(message), single(message))).collect();
    tool_messages.sort_by_key(|(place, _)| place.unwrap_or(usize::MAX));
    let content = spoken.iter().map(|message| message.content()).filter(|text| !text.is_empty());
    Some(ConversationTurn {
        turn_number: first.turn,
        user_messages,
        assistant_message: ConversationMessage {
            role: Role::Assistant,
            content: content.collect::<Vec<_>>().join("\n"),
            tool_calls,
            inner: spoken.clone(),
            ..single(first)
        },
        tool_messages: tool_messages.into_iter().map(|(_, message)| message).collect(),
        provider_payload: spoken.iter().find_map(|message| message.provider.clone()),
        evaluation_id,
        created_at: first.created_at,
    })
}

fn single(message: &Arc<InnerMessage>) -> ConversationMessage {
    ConversationMessage {
        role: message.role(),
        content: message.content(),
        tool_calls: Vec::new(),
        tool_call_id: message.tool_call_id(),
        name: message.tool_name().map(str::to_owned),
        created_at: message.created_at,
        message_id: message.message_id,
        inner: vec![message.clone()],
    }
}
