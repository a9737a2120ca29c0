//! The transcript: who said what, in order.
//!
//! It is the slice of [`InnerMessage`]s that every session holds, and so it can be read from a live session, from a journal
//! and from a lone snapshot alike. The order of evaluations is that of the journal.

use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};

use super::call::CallStatus;
use crate::id::{CallId, EvaluationId};
use crate::journal::{InnerMessage, Provenance, Role};
use crate::message::OptionCall;
use crate::session::{CarriedProvenance, Items, Session, SessionError, Snapshot};

/// A call as the assistant made it, with its status.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCallRecord {
    /// The call.
    pub call_id: CallId,
    /// The option.
    pub name: String,
    /// The arguments as they were received, byte for byte.
    pub arguments: String,
    /// How far it has come.
    #[serde(default)]
    pub status: CallStatus,
    /// The id that the call had where the conversation comes from, when that is none of ours. `call_id` is derived from it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub foreign_id: Option<String>,
}

/// All messages of a session that are visible.
#[derive(Debug, Clone, Default)]
pub struct Transcript {
    messages: Items<InnerMessage>,
    /// What the journal knows beside the messages, for exports.
    carried: CarriedProvenance,
    /// Built by the first query that needs it, shared by clones, and carried along by [`Transcript::push`].
    index: Arc<OnceLock<Index>>,
}

/// Where to find what is asked for, so that asking about every message takes a pass and not a pass each. Its collections are
/// persistent: the index of a longer transcript costs what is new in it.
#[derive(Debug, Clone, Default)]
struct Index {
    /// The messages of each evaluation.
    evaluations: imbl::OrdMap<EvaluationId, Items<InnerMessage>>,
    /// What the result of each call says.
    results: imbl::OrdMap<CallId, CallStatus>,
    /// How many answers there are, and which is the last one.
    answers: usize,
    last_answer: Option<(EvaluationId, u64)>,
}

impl Index {
    fn add(&mut self, message: &Arc<InnerMessage>) {
        self.evaluations.entry(message.evaluation_id).or_default().extend([message.clone()]);
        if let Some(result) = message.message.option_result() {
            self.results.insert(result.invocation_id, CallStatus::of(result));
        }
        if message.role() == Role::Assistant {
            let answer = (message.evaluation_id, message.turn);
            if self.last_answer.replace(answer) != Some(answer) {
                self.answers += 1;
            }
        }
    }
}

impl Snapshot {
    /// The transcript, with what the snapshot carries.
    pub fn transcript(&self) -> Result<Transcript, SessionError> {
        Ok(Transcript::carrying(self.all()?, self.carried().clone()))
    }
}

impl Transcript {
    /// The transcript of a session.
    pub fn of(session: &Session) -> Result<Self, SessionError> {
        Ok(Self::carrying(session.all()?, session.carried().clone()))
    }

    /// The transcript that these messages are.
    pub fn new(messages: Items<InnerMessage>) -> Self {
        Self::carrying(messages, CarriedProvenance::Nothing)
    }

    pub(crate) fn carrying(messages: Items<InnerMessage>, carried: CarriedProvenance) -> Self {
        Self { messages, carried, index: Arc::default() }
    }

    /// What is known of an evaluation beside its messages; nothing when the transcript comes from no journal.
    pub(super) fn provenance(&self, evaluation: EvaluationId) -> Option<Provenance> {
        let all = Provenance::clone(&*self.carried.provenance()?);
        let pending = self.pending_tool_calls(evaluation);
        let is_pending = |call| pending.iter().any(|one| one.call_id == call);
        Some(all.of_evaluation(evaluation, is_pending))
    }

    /// All messages, of all evaluations.
    pub fn all(&self) -> &Items<InnerMessage> {
        &self.messages
    }

    /// Adds a message at the end. What is known of the messages before it is kept, so this costs the same at any length.
    pub fn push(&mut self, message: Arc<InnerMessage>) {
        let index = self.index.get().cloned().map(|mut index| {
            index.add(&message);
            index
        });
        self.index = Arc::new(index.map_or_else(OnceLock::new, OnceLock::from));
        self.messages.extend([message]);
    }

    /// The messages of one evaluation.
    pub fn inner_messages(&self, evaluation: EvaluationId) -> Vec<Arc<InnerMessage>> {
        self.index().evaluations.get(&evaluation).map_or_else(Vec::new, |all| all.iter().cloned().collect())
    }

    /// The messages of one evaluation, shared with this transcript.
    pub fn of_evaluation(&self, evaluation: EvaluationId) -> Items<InnerMessage> {
        self.index().evaluations.get(&evaluation).cloned().unwrap_or_default()
    }

    /// How many answers there are, in all evaluations. The messages of one answer stand together.
    pub fn answers(&self) -> usize {
        self.index().answers
    }

    /// The evaluations in the order in which they started.
    pub fn evaluations(&self) -> Vec<EvaluationId> {
        let first = self.messages.iter().filter(|message| message.sequence == 0);
        first.map(|message| message.evaluation_id).collect()
    }

    /// The evaluation that started last.
    pub fn latest_evaluation_id(&self) -> Option<EvaluationId> {
        self.messages.iter().rev().find(|message| message.sequence == 0).map(|message| message.evaluation_id)
    }

    /// The calls that a message makes: one for a call, none for anything else.
    pub fn tool_calls(&self, message: &InnerMessage) -> Vec<ToolCallRecord> {
        let call = message.message.option_call();
        call.map(|call| record(call, self.status(call.invocation_id))).into_iter().collect()
    }

    /// The calls of an evaluation, in the order in which they were made.
    pub fn evaluation_calls(&self, evaluation: EvaluationId) -> Vec<ToolCallRecord> {
        self.inner_messages(evaluation).iter().flat_map(|message| self.tool_calls(message)).collect()
    }

    /// The calls of an evaluation that have no result.
    pub fn pending_tool_calls(&self, evaluation: EvaluationId) -> Vec<ToolCallRecord> {
        let mut calls = self.evaluation_calls(evaluation);
        calls.retain(|call| call.status == CallStatus::Pending);
        calls
    }

    /// The message that makes a call.
    pub fn message_of(&self, call: CallId) -> Option<&Arc<InnerMessage>> {
        let makes = |message: &&Arc<InnerMessage>| {
            message.message.option_call().is_some_and(|made| made.invocation_id == call)
        };
        self.messages.iter().rev().find(makes)
    }

    /// How far a call has come, by its result.
    pub fn status(&self, call: CallId) -> CallStatus {
        self.index().results.get(&call).copied().unwrap_or(CallStatus::Pending)
    }

    fn index(&self) -> &Index {
        self.index.get_or_init(|| {
            let mut index = Index::default();
            self.messages.iter().for_each(|message| index.add(message));
            index
        })
    }
}

fn record(call: &OptionCall, status: CallStatus) -> ToolCallRecord {
    ToolCallRecord {
        call_id: call.invocation_id,
        name: call.option_name.clone(),
        arguments: call.arguments.text().into_owned(),
        status,
        foreign_id: None,
    }
}
