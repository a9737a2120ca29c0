//! The machine of agents that call tools by JSON: ask, run the calls, ask again, until an answer has no
//! calls.
//!
//! It detects a policy that loops: one that repeats the same calls with the same arguments.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::Value;

use super::{
    EvaluationHistory, EvaluationResult, Machine, MachineAction, MachineError, MachineEvent, MachineFactory,
    PendingCall, TurnState, answers_of,
};
use crate::code::ErrorCode;
use crate::id::CallId;
use crate::journal::{InnerMessage, Role};
use crate::message::Arguments;

/// The result of a call that the token limit cut off.
const CUT_OFF: &str = "the answer reached its token limit before the arguments of this call were complete, so it was not \
                       run; call it again, with shorter arguments or fewer calls in one answer";

/// Asks, runs the calls and asks again, until an answer has no calls.
#[derive(Debug, Clone, Default)]
pub struct ToolLoop {
    max_turns: Option<u64>,
    max_repeats: Option<u64>,
    /// Number of answers.
    turns: u64,
    /// Calls of the last answer.
    called: Vec<(String, Arguments)>,
    /// Number of consecutive answers with these calls.
    repeats: u64,
    /// Calls that are not dispatched yet, in order.
    wanted: Vec<PendingCall>,
    /// Dispatched calls without a result.
    running: HashSet<CallId>,
    /// Whether the last answer is final, and no message came after it.
    is_answered: bool,
    /// The turn whose answer counts as final although it reached its token limit.
    accepted: Option<u64>,
    output: Option<Value>,
}

impl ToolLoop {
    /// Creates a loop at the start of an evaluation.
    pub fn new(max_turns: Option<u64>) -> Self {
        Self { max_turns, ..Self::default() }
    }

    /// Limits the number of consecutive answers that make the same calls with the same arguments. At the
    /// limit the evaluation fails.
    #[must_use]
    pub fn with_max_repeats(mut self, max_repeats: Option<u64>) -> Self {
        self.max_repeats = max_repeats;
        self
    }

    /// Rebuilds the loop of an evaluation from its transcript.
    pub fn rebuilt(max_turns: Option<u64>, messages: &[Arc<InnerMessage>]) -> Self {
        Self::rebuilt_accepting(max_turns, messages, None)
    }

    fn rebuilt_accepting(
        max_turns: Option<u64>,
        messages: &[Arc<InnerMessage>],
        accepted: Option<u64>,
    ) -> Self {
        let mut machine = Self { accepted, ..Self::new(max_turns) };
        let mut answers = answers_of(messages);
        for message in messages {
            match message.role() {
                Role::Assistant => {
                    // The whole answer is handled at its first message.
                    if let Some(answer) = answers.remove(&message.turn) {
                        let messages = answer.into_iter().cloned().collect();
                        machine.handle(MachineEvent::Answered { messages, output: None });
                    }
                }
                Role::Tool => {
                    if let Some(call) = message.tool_call_id() {
                        machine.handle(MachineEvent::CallEnded { call, result: message.clone() });
                    }
                }
                Role::System | Role::User => machine.handle(MachineEvent::MessageAdded(message.clone())),
            }
        }
        machine
    }
}

impl ToolLoop {
    /// Counts consecutive answers that make the same calls. An answer without calls resets the count.
    fn note_repeats(&mut self, calls: &[PendingCall]) {
        let is_same = !calls.is_empty()
            && calls.len() == self.called.len()
            && calls.iter().zip(&self.called).all(|(wanted, (name, arguments))| {
                wanted.name == *name && is_same_text(&wanted.arguments, arguments)
            });
        self.repeats = if is_same { self.repeats + 1 } else { 1 };
        if !is_same {
            self.called =
                calls.iter().map(|wanted| (wanted.name.clone(), wanted.arguments.clone())).collect();
        }
    }
}

/// Returns whether arguments are equal. Large arguments in the store are compared by object id. Stored and
/// inline arguments never count as equal, so an interruption may reset the count.
fn is_same_text(one: &Arguments, other: &Arguments) -> bool {
    match (one.object(), other.object()) {
        (Some(one), Some(other)) => one == other,
        _ => one == other,
    }
}

impl Machine for ToolLoop {
    fn handle(&mut self, event: MachineEvent) {
        match event {
            MachineEvent::MessageAdded(message) => {
                self.is_answered = false;
                // Continued answers count as well.
                self.turns = self.turns.max(message.turn);
                // A new message may be a reason to repeat a call.
                self.called.clear();
            }
            MachineEvent::Answered { messages, output } => {
                self.turns = messages.iter().map(|message| message.turn).fold(self.turns, u64::max);
                let calls = messages.iter().filter_map(|message| {
                    let call = message.message.option_call()?;
                    Some(PendingCall {
                        call_id: call.invocation_id,
                        name: call.option_name.clone(),
                        arguments: call.arguments.clone(),
                        turn: message.turn,
                        step_num: message.message.step_num,
                        made_at: None,
                        refusal: call.cut_off.then(|| CUT_OFF.to_owned()),
                    })
                });
                let calls: Vec<PendingCall> = calls.collect();
                self.note_repeats(&calls);
                self.is_answered = match TurnState::of(&messages) {
                    TurnState::Whole | TurnState::Empty => true,
                    TurnState::CutOff => self.accepted == Some(self.turns),
                    TurnState::Calls | TurnState::Interrupted | TurnState::Withheld => false,
                };
                self.wanted.extend(calls);
                self.output = output;
            }
            MachineEvent::CallEnded { call, .. } => {
                self.running.remove(&call);
                self.wanted.retain(|wanted| wanted.call_id != call);
            }
        }
    }

    fn next(&mut self) -> MachineAction {
        if !self.wanted.is_empty() {
            let wanted = std::mem::take(&mut self.wanted);
            self.running.extend(wanted.iter().map(|wanted| wanted.call_id));
            return MachineAction::Call(wanted);
        }
        if !self.running.is_empty() {
            return MachineAction::Wait;
        }
        if self.is_answered {
            return MachineAction::Finish(EvaluationResult::completed(self.output.take()));
        }
        if let Some(limit) = self.max_turns.filter(|limit| self.turns >= *limit) {
            let turns = if limit == 1 { "1 turn".to_owned() } else { format!("{limit} turns") };
            let message = format!("there was no answer after {turns}");
            return MachineAction::Finish(EvaluationResult::failed(ErrorCode::MaxTurns, message));
        }
        if let Some(limit) =
            self.max_repeats.filter(|limit| self.repeats >= *limit && !self.called.is_empty())
        {
            let names: Vec<_> = self.called.iter().map(|(name, _)| name.as_str()).collect();
            let names = names.join(", ");
            let message =
                format!("the last {limit} answers made the same calls with the same arguments: {names}");
            return MachineAction::Finish(EvaluationResult::failed(ErrorCode::LoopDetected, message));
        }
        MachineAction::Ask
    }
}

/// Builds [`ToolLoop`]s.
#[derive(Debug, Clone, Copy, Default)]
pub struct ToolLoopFactory {
    /// Largest number of answers of an evaluation.
    pub max_turns: Option<u64>,
    /// Largest number of consecutive answers that make the same calls with the same arguments.
    pub max_repeats: Option<u64>,
}

impl MachineFactory for ToolLoopFactory {
    fn rebuild(&self, past: &EvaluationHistory) -> Result<Box<dyn Machine>, MachineError> {
        let machine = ToolLoop::rebuilt_accepting(self.max_turns, &past.messages, past.evaluation.accepted);
        Ok(Box::new(machine.with_max_repeats(self.max_repeats)))
    }
}
