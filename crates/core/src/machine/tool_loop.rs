//! The machine of agents that call tools by JSON: ask, run what was called, ask again, until an answer calls nothing.
//!
//! It notices a policy that goes in circles: one that answers with the same calls and the same arguments again and again.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde_json::Value;

use super::{
    EvaluationHistory, EvaluationResult, Machine, MachineAction, MachineError, MachineEvent, MachineFactory,
    PendingCall, TurnState,
};
use crate::code::ErrorCode;
use crate::id::CallId;
use crate::journal::{InnerMessage, Role};
use crate::message::Arguments;

/// What a model is told of a call that the token limit cut off.
const CUT_OFF: &str = "the answer reached its token limit before the arguments of this call were complete, so it was not \
                       run; call it again, with shorter arguments or fewer calls in one answer";

/// Ask, run what was called, ask again, until an answer calls nothing.
#[derive(Debug, Clone, Default)]
pub struct ToolLoop {
    max_turns: Option<u64>,
    max_repeats: Option<u64>,
    /// How many answers there were.
    turns: u64,
    /// What the last answer called.
    called: Vec<(String, Arguments)>,
    /// How many answers in a row have called that.
    repeats: u64,
    /// Calls that nobody was told to run yet, in order.
    wanted: Vec<PendingCall>,
    /// Calls without a result that somebody was told to run.
    running: HashSet<CallId>,
    /// Whether the last answer is final, and nobody has said anything since.
    is_answered: bool,
    /// The turn whose answer counts as final although it reached its token limit.
    accepted: Option<u64>,
    output: Option<Value>,
}

impl ToolLoop {
    /// A loop at the beginning of an evaluation.
    pub fn new(max_turns: Option<u64>) -> Self {
        Self { max_turns, ..Self::default() }
    }

    /// Ends the evaluation when so many answers in a row make the same calls with the same arguments.
    #[must_use]
    pub fn with_max_repeats(mut self, max_repeats: Option<u64>) -> Self {
        self.max_repeats = max_repeats;
        self
    }

    /// The loop of an evaluation as its transcript left it.
    pub fn rebuilt(max_turns: Option<u64>, messages: &[Arc<InnerMessage>]) -> Self {
        Self::rebuilt_accepting(max_turns, messages, None)
    }

    fn rebuilt_accepting(
        max_turns: Option<u64>,
        messages: &[Arc<InnerMessage>],
        accepted: Option<u64>,
    ) -> Self {
        let mut machine = Self { accepted, ..Self::new(max_turns) };
        let mut answers: HashMap<u64, Vec<Arc<InnerMessage>>> = HashMap::new();
        for message in messages.iter().filter(|message| message.role() == Role::Assistant) {
            answers.entry(message.turn).or_default().push(message.clone());
        }
        for message in messages {
            match message.role() {
                Role::Assistant => {
                    // The answer is taken in whole, at its first message.
                    if let Some(messages) = answers.remove(&message.turn) {
                        machine.take_in(MachineEvent::Answered { messages, output: None });
                    }
                }
                Role::Tool => {
                    if let Some(call) = message.tool_call_id() {
                        machine.take_in(MachineEvent::CallEnded { call, result: message.clone() });
                    }
                }
                Role::System | Role::User => machine.take_in(MachineEvent::Said(message.clone())),
            }
        }
        machine
    }
}

impl ToolLoop {
    /// Counts how many answers in a row have made the same calls. An answer without calls ends the row.
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

/// Whether arguments say the same. Large ones that lie in the store are told apart by where they lie; one that lies there is not
/// taken to be the same as one that does not, so a row that an interruption cuts may be counted anew.
fn is_same_text(one: &Arguments, other: &Arguments) -> bool {
    match (one.object(), other.object()) {
        (Some(one), Some(other)) => one == other,
        _ => one == other,
    }
}

impl Machine for ToolLoop {
    fn take_in(&mut self, event: MachineEvent) {
        match event {
            MachineEvent::Said(message) => {
                self.is_answered = false;
                // Answers that are continued count as well.
                self.turns = self.turns.max(message.turn);
                // What was said may be a reason to call the same again.
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
            let message = format!("there was no answer after {limit} turns");
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
    /// How many answers an evaluation may have.
    pub max_turns: Option<u64>,
    /// How many answers in a row may make the same calls with the same arguments.
    pub max_repeats: Option<u64>,
}

impl MachineFactory for ToolLoopFactory {
    fn rebuild(&self, past: &EvaluationHistory) -> Result<Box<dyn Machine>, MachineError> {
        let machine = ToolLoop::rebuilt_accepting(self.max_turns, &past.messages, past.evaluation.accepted);
        Ok(Box::new(machine.with_max_repeats(self.max_repeats)))
    }
}
