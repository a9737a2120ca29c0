//! The transcript grouped by turn.
//!
//! A [`ConversationState`] is one evaluation as a conversation: the system message, and a
//! [`ConversationTurn`] for each response with the user messages before it, its calls and their results in
//! the order of the calls. It is an export: users can keep it as JSON in their own storage, and resume the
//! evaluation from it without a store.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::transcript::{ToolCallRecord, Transcript};
use crate::id::{CallId, EvaluationId, MessageId, SessionId, SnapshotId, derived};
use crate::journal::{CarriedObject, InnerMessage, Provenance, ProviderSidecar, Role};
use crate::object::ObjectId;
use crate::time::Timestamp;

/// One message of a conversation, as providers count them: the text and calls of an assistant are one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConversationMessage {
    /// Role of the author.
    pub role: Role,
    /// The text.
    pub content: String,
    /// The calls that an assistant makes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCallRecord>,
    /// The call that a result belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<CallId>,
    /// The tool that returned a result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Time of creation.
    pub created_at: Timestamp,
    /// Id of the message.
    pub message_id: MessageId,
    /// The messages that it was made from, so that none of their data is lost: media, errors, steps.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inner: Vec<Arc<InnerMessage>>,
}

/// A provider's response, the messages before it and the results of its calls.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConversationTurn {
    /// Number of the response, from 1.
    pub turn_number: u64,
    /// Messages to the assistant since the previous turn.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub user_messages: Vec<ConversationMessage>,
    /// The response.
    pub assistant_message: ConversationMessage,
    /// The available results of its calls, in the order of the calls.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_messages: Vec<ConversationMessage>,
    /// The part of the response that only its provider understands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_payload: Option<ProviderSidecar>,
    /// The evaluation.
    pub evaluation_id: EvaluationId,
    /// Time at which the response was recorded.
    pub created_at: Timestamp,
}

/// One evaluation as a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub struct ConversationState {
    /// The evaluation.
    pub evaluation_id: EvaluationId,
    /// Namespace of the prompt.
    pub prompt_ns: String,
    /// Key of the prompt.
    pub prompt_key: String,
    /// The rendered prompt. Evaluations without a prompt have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_message: Option<ConversationMessage>,
    /// The turns, in order.
    #[serde(default)]
    pub turns: Vec<ConversationTurn>,
    /// Messages since the last turn that have no response yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unanswered: Vec<ConversationMessage>,
    /// Time of the first message.
    pub created_at: Timestamp,
    /// Id of this state of the conversation, derived from the messages.
    pub state_id: SnapshotId,
    /// Provenance from the session's journal. Without it, the evaluation's id stands for the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provenance: Option<Provenance>,
    /// Media that the messages refer to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub objects: Vec<CarriedObject>,
    /// Content that the messages refer to and the conversation does not hold. It can be adopted only if the
    /// store has that content.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refers_to: Vec<ObjectId>,
}

impl ConversationState {
    /// Returns the provenance of the conversation. Without a recorded one, the keys of its calls are derived
    /// from the evaluation's id.
    pub fn provenance(&self) -> Provenance {
        let unnamed = || Provenance::of_session(SessionId::from_uuid(*self.evaluation_id.as_uuid()));
        self.provenance.clone().unwrap_or_else(unnamed)
    }
}

impl Transcript {
    /// Returns one evaluation as a conversation; `None` if it has no messages.
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
            provenance: self.provenance(evaluation),
            objects: Vec::new(),
            refers_to: Vec::new(),
        };
        let carried = state.provenance.iter().flat_map(Provenance::object_refs);
        let mut refers_to: Vec<_> =
            messages.iter().flat_map(|message| message.object_refs()).chain(carried).collect();
        refers_to.sort();
        refers_to.dedup();
        state.refers_to = refers_to;
        let mut rest = messages.as_slice();
        if first.role() == Role::System {
            state.system_message = Some(single(first));
            rest = &rest[1..];
        }
        // A result may come after a user message or even after the next answer, so messages are grouped by
        // turn number and not by adjacency. In a turn without an answer, a result is treated as a plain
        // message.
        let answered = rest.iter().filter(|message| message.role() == Role::Assistant);
        let mut turns: BTreeMap<u64, Vec<_>> = answered.map(|message| (message.turn, Vec::new())).collect();
        let mut inputs = Vec::new();
        for message in rest {
            match (message.role(), turns.get_mut(&message.turn)) {
                (Role::Assistant | Role::Tool, Some(turn)) => turn.push(message.clone()),
                _ => inputs.push(message),
            }
        }
        let mut inputs = inputs.into_iter().peekable();
        for (turn_number, messages) in turns {
            let before = std::iter::from_fn(|| inputs.next_if(|message| message.turn < turn_number));
            let user_messages = before.map(single).collect();
            state.turns.extend(self.turn(evaluation, user_messages, messages));
        }
        state.unanswered = inputs.map(single).collect();
        Some(state)
    }

    fn turn(
        &self,
        evaluation_id: EvaluationId,
        user_messages: Vec<ConversationMessage>,
        messages: Vec<Arc<InnerMessage>>,
    ) -> Option<ConversationTurn> {
        let (spoken, mut results): (Vec<_>, Vec<_>) =
            messages.into_iter().partition(|message| message.role() == Role::Assistant);
        let first = spoken.first()?.clone();
        let tool_calls: Vec<_> = spoken.iter().flat_map(|message| self.tool_calls(message)).collect();
        let order: HashMap<_, _> = tool_calls.iter().map(|call| call.call_id).zip(0..).collect();
        results.sort_by_key(|result| {
            result.tool_call_id().and_then(|call| order.get(&call)).copied().unwrap_or(usize::MAX)
        });
        Some(ConversationTurn {
            turn_number: first.turn,
            user_messages,
            provider_payload: spoken.iter().find_map(|message| message.provider.as_deref().cloned()),
            assistant_message: ConversationMessage {
                content: spoken_text(&spoken),
                tool_calls,
                inner: spoken,
                ..single(&first)
            },
            tool_messages: results.iter().map(single).collect(),
            evaluation_id,
            created_at: first.created_at,
        })
    }
}

/// Returns the text of an answer that consists of several messages.
pub(super) fn spoken_text(spoken: &[Arc<InnerMessage>]) -> String {
    let content = spoken.iter().map(|message| message.content()).filter(|text| !text.is_empty());
    content.collect::<Vec<_>>().join("\n")
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
