//! The machine of agents that call tools by JSON: ask, run what was called, ask again, until an answer calls nothing.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde_json::Value;

use super::{Action, Ending, Event, Machine, MachineError, Machinery, Wanted};
use crate::id::{CallId, EvaluationId};
use crate::journal::{InnerMessage, Role};
use crate::view::JournalView;

/// Ask, run what was called, ask again, until an answer calls nothing.
#[derive(Debug, Clone, Default)]
pub struct ToolLoop {
    max_turns: Option<u64>,
    /// How many answers there were.
    turns: u64,
    /// Calls that nobody was told to run yet, in order.
    wanted: Vec<Wanted>,
    /// Calls without a result that somebody was told to run.
    running: HashSet<CallId>,
    /// Whether the last answer calls nothing, and nobody has said anything since.
    is_answered: bool,
    output: Option<Value>,
}

impl ToolLoop {
    /// A loop at the beginning of an evaluation.
    pub fn new(max_turns: Option<u64>) -> Self {
        Self { max_turns, ..Self::default() }
    }

    /// The loop of an evaluation as its transcript left it.
    pub fn rebuilt(max_turns: Option<u64>, messages: &[Arc<InnerMessage>]) -> Self {
        let mut machine = Self::new(max_turns);
        let mut answers: HashMap<u64, Vec<Arc<InnerMessage>>> = HashMap::new();
        for message in messages.iter().filter(|message| message.role() == Role::Assistant) {
            answers.entry(message.turn).or_default().push(message.clone());
        }
        for message in messages {
            match message.role() {
                Role::Assistant => {
                    // The answer is taken in whole, at its first message.
                    if let Some(messages) = answers.remove(&message.turn) {
                        machine.take_in(Event::Answered { messages, output: None });
                    }
                }
                Role::Tool => {
                    if let Some(call) = message.tool_call_id() {
                        machine.take_in(Event::CallEnded { call, result: message.clone() });
                    }
                }
                Role::System | Role::User => machine.take_in(Event::Said(message.clone())),
            }
        }
        machine
    }
}

impl Machine for ToolLoop {
    fn take_in(&mut self, event: Event) {
        match event {
            Event::Said(_) => self.is_answered = false,
            Event::Answered { messages, output } => {
                self.turns = messages.iter().map(|message| message.turn).fold(self.turns, u64::max);
                let calls = messages.iter().filter_map(|message| {
                    let call = message.message.option_call()?;
                    Some(Wanted {
                        call_id: call.invocation_id,
                        name: call.option_name.clone(),
                        arguments: call.arguments.clone(),
                        turn: message.turn,
                        step_num: message.message.step_num,
                    })
                });
                let before = self.wanted.len();
                self.wanted.extend(calls);
                self.is_answered = self.wanted.len() == before;
                self.output = output;
            }
            Event::CallEnded { call, .. } => {
                self.running.remove(&call);
                self.wanted.retain(|wanted| wanted.call_id != call);
            }
        }
    }

    fn next(&mut self) -> Action {
        if !self.wanted.is_empty() {
            let wanted = std::mem::take(&mut self.wanted);
            self.running.extend(wanted.iter().map(|wanted| wanted.call_id));
            return Action::Call(wanted);
        }
        if !self.running.is_empty() {
            return Action::Wait;
        }
        if self.is_answered {
            return Action::Finish(Ending::completed(self.output.take()));
        }
        match self.max_turns {
            Some(limit) if self.turns >= limit => {
                let message = format!("there was no answer after {limit} turns");
                Action::Finish(Ending::failed("max_turns", message))
            }
            _ => Action::Ask,
        }
    }
}

/// Builds [`ToolLoop`]s.
#[derive(Debug, Clone, Copy, Default)]
pub struct ToolLoops {
    /// How many answers an evaluation may have.
    pub max_turns: Option<u64>,
}

impl Machinery for ToolLoops {
    fn rebuild(
        &self,
        view: &JournalView,
        evaluation: EvaluationId,
    ) -> Result<Box<dyn Machine>, MachineError> {
        view.evaluation(evaluation).ok_or(MachineError::NoEvaluation { evaluation })?;
        let messages = view.transcript()?.inner_messages(evaluation);
        Ok(Box::new(ToolLoop::rebuilt(self.max_turns, &messages)))
    }
}
