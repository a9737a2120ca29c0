//! The transcript: who said what, in order.
//!
//! It is the slice of [`InnerMessage`]s that every session holds, and so it can be read from a live session, from a journal
//! and from a lone snapshot alike. The order of evaluations is that of the journal.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::call::CallStatus;
use crate::id::{CallId, EvaluationId};
use crate::journal::InnerMessage;
use crate::message::OptionCall;
use crate::session::{Items, Session, SessionError};

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
    pub status: CallStatus,
}

/// All messages of a session that are visible.
#[derive(Debug, Clone, Default)]
pub struct Transcript {
    messages: Items<InnerMessage>,
}

impl Transcript {
    /// The transcript of a session.
    pub fn of(session: &Session) -> Result<Self, SessionError> {
        session.all().map(Self::new)
    }

    /// The transcript that these messages are.
    pub fn new(messages: Items<InnerMessage>) -> Self {
        Self { messages }
    }

    /// All messages, of all evaluations.
    pub fn all(&self) -> &Items<InnerMessage> {
        &self.messages
    }

    /// The messages of one evaluation.
    pub fn inner_messages(&self, evaluation: EvaluationId) -> Vec<Arc<InnerMessage>> {
        self.messages.filter(|message| message.evaluation_id == evaluation)
    }

    /// The evaluations in the order in which they started.
    pub fn evaluations(&self) -> Vec<EvaluationId> {
        let mut evaluations = Vec::new();
        for message in self.messages.iter().filter(|message| message.sequence == 0) {
            evaluations.push(message.evaluation_id);
        }
        evaluations
    }

    /// The evaluation that started last.
    pub fn latest_evaluation_id(&self) -> Option<EvaluationId> {
        self.messages.iter().rev().find(|message| message.sequence == 0).map(|message| message.evaluation_id)
    }

    /// The calls that a message makes: one for a call, none for anything else.
    pub fn tool_calls(&self, message: &InnerMessage) -> Vec<ToolCallRecord> {
        let Some(call) = message.message.option_call() else { return Vec::new() };
        let status = self.status(call.invocation_id);
        vec![record(call, status)]
    }

    /// The calls of an evaluation, in the order in which they were made.
    pub fn evaluation_calls(&self, evaluation: EvaluationId) -> Vec<ToolCallRecord> {
        let messages = self.inner_messages(evaluation);
        calls(&messages)
    }

    /// The calls of an evaluation that have no result.
    pub fn pending_tool_calls(&self, evaluation: EvaluationId) -> Vec<ToolCallRecord> {
        let mut calls = self.evaluation_calls(evaluation);
        calls.retain(|call| call.status == CallStatus::Pending);
        calls
    }

    /// How far a call has come, by its result.
    pub fn status(&self, call: CallId) -> CallStatus {
        let mut results = self.messages.iter().rev().filter_map(|message| message.message.option_result());
        results.find(|result| result.invocation_id == call).map_or(CallStatus::Pending, |result| {
            if result.is_error { CallStatus::Failed } else { CallStatus::Completed }
        })
    }
}

/// The calls among messages, in order, with their status.
pub(super) fn calls(messages: &[Arc<InnerMessage>]) -> Vec<ToolCallRecord> {
    let results = messages.iter().filter_map(|message| message.message.option_result());
    let results: BTreeMap<CallId, bool> =
        results.map(|result| (result.invocation_id, result.is_error)).collect();
    let calls = messages.iter().filter_map(|message| message.message.option_call());
    let status = |call: &OptionCall| match results.get(&call.invocation_id) {
        None => CallStatus::Pending,
        Some(false) => CallStatus::Completed,
        Some(true) => CallStatus::Failed,
    };
    calls.map(|call| record(call, status(call))).collect()
}

fn record(call: &OptionCall, status: CallStatus) -> ToolCallRecord {
    ToolCallRecord {
        call_id: call.invocation_id,
        name: call.option_name.clone(),
        arguments: call.arguments.text().into_owned(),
        status,
    }
}
