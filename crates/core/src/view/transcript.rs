//! The transcript: all visible messages, in order.
//!
//! It is the slice of [`InnerMessage`]s that every session holds, so it can be read from a live session, from
//! a journal and from a snapshot alone. The order of evaluations is that of the journal.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};

use super::call::CallStatus;
use crate::id::{CallId, EvaluationId};
use crate::journal::{InnerMessage, Provenance, Role};
use crate::message::{Content, OptionCall};
use crate::session::{CarriedProvenance, Items, Session, SessionError, Snapshot};

/// A call of the assistant, with its status.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCallRecord {
    /// The call.
    pub call_id: CallId,
    /// Name of the option.
    pub name: String,
    /// The received arguments, byte for byte.
    pub arguments: String,
    /// Status that follows from the result.
    #[serde(default)]
    pub status: CallStatus,
    /// The id of the call in another program, if the conversation was imported. `call_id` is derived from it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub foreign_id: Option<String>,
}

/// All visible messages of a session.
#[derive(Debug, Clone, Default)]
pub struct Transcript {
    messages: Items<InnerMessage>,
    /// Provenance from the journal, for exports.
    carried: CarriedProvenance,
    /// Built by the first query that needs it, shared by clones, and extended by [`Transcript::push`].
    index: Arc<OnceLock<Index>>,
}

/// An index, so that querying every message takes one pass and not a pass each. Its collections are
/// persistent: extending it costs only as much as the new messages.
#[derive(Debug, Clone, Default)]
struct Index {
    /// The messages of each evaluation.
    evaluations: imbl::OrdMap<EvaluationId, Items<InnerMessage>>,
    /// Status of each call by its result.
    results: imbl::OrdMap<CallId, CallStatus>,
    /// Number of answers, and the last one.
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
    /// Returns the transcript, with the provenance of the snapshot.
    pub fn transcript(&self) -> Result<Transcript, SessionError> {
        Ok(Transcript::carrying(self.all()?, self.carried().clone()))
    }
}

impl Transcript {
    /// Returns the transcript of a session.
    pub fn of(session: &Session) -> Result<Self, SessionError> {
        Ok(Self::carrying(session.all()?, session.carried().clone()))
    }

    /// Creates a transcript of these messages.
    pub fn new(messages: Items<InnerMessage>) -> Self {
        Self::carrying(messages, CarriedProvenance::Nothing)
    }

    pub(crate) fn carrying(messages: Items<InnerMessage>, carried: CarriedProvenance) -> Self {
        Self { messages, carried, index: Arc::default() }
    }

    /// Returns the provenance of an evaluation; none if the transcript does not come from a journal.
    pub(super) fn provenance(&self, evaluation: EvaluationId) -> Option<Provenance> {
        let all = Provenance::clone(&*self.carried.provenance()?);
        let pending = self.pending_tool_calls(evaluation);
        let is_pending = |call| pending.iter().any(|one| one.call_id == call);
        Some(all.of_evaluation(evaluation, is_pending))
    }

    /// All messages of all evaluations.
    pub fn all(&self) -> &Items<InnerMessage> {
        &self.messages
    }

    /// Adds a message at the end. The index is extended, so the cost does not depend on the length.
    pub fn push(&mut self, message: Arc<InnerMessage>) {
        let index = self.index.get().cloned().map(|mut index| {
            index.add(&message);
            index
        });
        self.index = Arc::new(index.map_or_else(OnceLock::new, OnceLock::from));
        self.messages.extend([message]);
    }

    /// Returns the messages of one evaluation.
    pub fn inner_messages(&self, evaluation: EvaluationId) -> Vec<Arc<InnerMessage>> {
        self.index().evaluations.get(&evaluation).map_or_else(Vec::new, |all| all.iter().cloned().collect())
    }

    /// Returns the messages of one evaluation, shared with this transcript.
    pub fn of_evaluation(&self, evaluation: EvaluationId) -> Items<InnerMessage> {
        self.index().evaluations.get(&evaluation).cloned().unwrap_or_default()
    }

    /// Returns the number of answers in all evaluations. The messages of one answer are adjacent.
    pub fn answers(&self) -> usize {
        self.index().answers
    }

    /// Returns the evaluations in the order in which they started.
    pub fn evaluations(&self) -> Vec<EvaluationId> {
        let first = self.messages.iter().filter(|message| message.sequence == 0);
        first.map(|message| message.evaluation_id).collect()
    }

    /// The evaluation that started last.
    pub fn latest_evaluation_id(&self) -> Option<EvaluationId> {
        self.messages.iter().rev().find(|message| message.sequence == 0).map(|message| message.evaluation_id)
    }

    /// Returns the calls of a message: one for a call, none for other kinds.
    pub fn tool_calls(&self, message: &InnerMessage) -> Vec<ToolCallRecord> {
        let record = |call: &OptionCall| ToolCallRecord {
            call_id: call.invocation_id,
            name: call.option_name.clone(),
            arguments: call.arguments.text().into_owned(),
            status: self.status(call.invocation_id),
            foreign_id: None,
        };
        message.message.option_call().map(record).into_iter().collect()
    }

    /// Returns the calls of an evaluation, in the order in which they were made.
    pub fn evaluation_calls(&self, evaluation: EvaluationId) -> Vec<ToolCallRecord> {
        self.inner_messages(evaluation).iter().flat_map(|message| self.tool_calls(message)).collect()
    }

    /// Returns the calls of an evaluation that have no result.
    pub fn pending_tool_calls(&self, evaluation: EvaluationId) -> Vec<ToolCallRecord> {
        let mut calls = self.evaluation_calls(evaluation);
        calls.retain(|call| call.status == CallStatus::Pending);
        calls
    }

    /// Returns the message that makes a call.
    pub fn message_of(&self, call: CallId) -> Option<&Arc<InnerMessage>> {
        let makes = |message: &&Arc<InnerMessage>| {
            message.message.option_call().is_some_and(|made| made.invocation_id == call)
        };
        self.messages.iter().rev().find(makes)
    }

    /// Returns the status of a call by its result.
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

/// One decision cycle: the messages of an evaluation with one `step_num`, which are what a policy saw, chose and received.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Transition {
    /// Number of the step. A message without one is a transition of its own.
    pub step_num: Option<u64>,
    /// Messages that the policy saw.
    pub observed: Vec<Arc<InnerMessage>>,
    /// Text and calls of the policy.
    pub chosen: Vec<Arc<InnerMessage>>,
    /// Results of the calls.
    pub results: Vec<Arc<InnerMessage>>,
}

impl Transcript {
    /// Returns the transitions of an evaluation, in the order in which their steps began.
    pub fn transitions(&self, evaluation: EvaluationId) -> Vec<Transition> {
        let mut transitions: Vec<Transition> = Vec::new();
        let mut steps = HashMap::new();
        for message in self.inner_messages(evaluation) {
            let step_num = message.message.step_num;
            let next = transitions.len();
            let index = step_num.map_or(next, |step| *steps.entry(step).or_insert(next));
            if index == next {
                transitions.push(Transition { step_num, ..Transition::default() });
            }
            let transition = &mut transitions[index];
            match (&message.message.content, message.role()) {
                (Content::OptionResult(_), _) => transition.results.push(message),
                (Content::OptionCall(_), _) | (_, Role::Assistant) => transition.chosen.push(message),
                _ => transition.observed.push(message),
            }
        }
        transitions
    }
}
