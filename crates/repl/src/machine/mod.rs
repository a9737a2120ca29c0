//! The machine of a Lisp evaluation: it asks for an answer, runs the program in it, and repeats this until a
//! program returns.
//!
//! The state of the machine follows from the journal. An interrupted program runs again from its start with
//! the recorded results of its calls, so a machine that is rebuilt at any record returns the actions that its
//! predecessor would have returned.

mod earlier;
mod feedback;
mod rebuild;
mod run;
mod settle;
mod show;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use backstitch_core::code::ErrorCode;
use backstitch_core::extra::Extra;
use backstitch_core::id::{CallId, EvaluationId};
use backstitch_core::journal::{Finish, InnerMessage, ProgramStarted, RecordBody, Role, TurnFinished};
use backstitch_core::machine::{
    EvaluationHistory, EvaluationResult, Machine, MachineAction, MachineError, MachineEvent, MachineFactory,
    PendingCall, TurnState, VisibleHistory,
};
use backstitch_core::message::Content;
use backstitch_core::rng::Seed;
use backstitch_lisp::{Engine, INTERPRETER, Inputs, Map, Memory, Value};

use crate::agent::{AgentError, CompiledAgent, LispAgent};
use crate::extract::extract;
use crate::turn::{Turn, TurnError};
use run::{Origin, ProgramCall, Run, Step};
use show::VisibleLog;

/// The refusal of calls that an answer makes besides its program.
const NOT_IN_ANSWERS: &str = "tools are called by the program: write (tool/name {:parameter value}) in it";

/// The refusal of pending calls of a program that was interrupted and is not resumed.
const NOT_ANY_MORE: &str = "the program that made the call was interrupted and is not resumed";

/// Builds the machines of a Lisp agent. A clone is cheap.
#[derive(Debug, Clone)]
pub struct LispMachinery(Arc<CompiledAgent>);

impl LispMachinery {
    /// Compiles an agent.
    pub fn new(agent: LispAgent) -> Result<Self, AgentError> {
        Self::with_engine(agent, Engine::new())
    }

    /// Compiles an agent for an engine that is shared with others.
    pub fn with_engine(agent: LispAgent, engine: Engine) -> Result<Self, AgentError> {
        CompiledAgent::new(agent, engine).map(|prepared| Self(Arc::new(prepared)))
    }

    /// The agent.
    pub fn agent(&self) -> &LispAgent {
        &self.0.agent
    }
}

impl MachineFactory for LispMachinery {
    fn rebuild(&self, past: &EvaluationHistory) -> Result<Box<dyn Machine>, MachineError> {
        LispMachine::rebuilt(self.0.clone(), past).map(|machine| Box::new(machine) as Box<dyn Machine>)
    }

    fn continues_answers(&self) -> bool {
        // A continued answer would hold two halves of a program, and each would be run on its own.
        false
    }
}

/// An answer of the model whose program has not been started.
#[derive(Debug, Clone)]
struct Answer {
    origin: Origin,
    text: String,
    at: backstitch_core::time::Timestamp,
    /// Why the answer may contain only a part of a program, so that nothing of it is run.
    incomplete: Option<TurnError>,
}

/// The state of a machine.
enum Phase {
    /// Waits for an answer.
    Ask,
    /// Has an answer. The calls are those that the answer makes itself, which are refused.
    Answered(Answer, Vec<PendingCall>),
    /// A program runs, or is about to.
    Running(Box<Run>, Box<ProgramStarted>),
    /// A program is not resumed. Pending calls are refused before the turn ends; the flag says that they
    /// were.
    Abandoned(Box<Run>, TurnError, bool),
    /// A turn has ended and is recorded next.
    Ended(Box<Turn>, Box<RecordBody>),
    /// The evaluation ends with this result.
    Finish(EvaluationResult),
}

/// The results of the programs so far.
#[derive(Clone, Default)]
struct ProgramState {
    memory: Memory,
    /// The turn that changed the memory last.
    memory_turn: Option<u64>,
    /// The results of the last programs, the latest last.
    history: Vec<Value>,
    /// The finished tasks, by id.
    tasks: Map,
}

/// The number of results that `*1`, `*2` and so on refer to.
const HISTORY: usize = 3;

impl ProgramState {
    fn remember(&mut self, result: Value) {
        self.history.push(result);
        let extra = self.history.len().saturating_sub(HISTORY);
        self.history.drain(..extra);
    }
}

/// The machine of a Lisp evaluation.
pub struct LispMachine {
    prepared: Arc<CompiledAgent>,
    evaluation: EvaluationId,
    seed: Seed,
    seen: VisibleLog,
    left: ProgramState,
    /// The number of answers so far.
    turns: u64,
    /// The turn of the latest user message.
    last_input_turn: Option<u64>,
    /// The turn whose program runs although its answer reached the token limit.
    accepted: Option<u64>,
    phase: Phase,
}

impl LispMachine {
    fn new(prepared: Arc<CompiledAgent>, past: &EvaluationHistory) -> Self {
        let (evaluation, seed) = (past.evaluation.evaluation_id, past.seed);
        let seen = VisibleLog::new(&prepared, earlier::earlier(&past.followed));
        let left = ProgramState::default();
        let (turns, last_input_turn, accepted, phase) = (0, None, None, Phase::Ask);
        Self { prepared, evaluation, seed, seen, left, turns, last_input_turn, accepted, phase }
    }

    fn add_message(&mut self, message: &Arc<InnerMessage>) {
        self.seen.add_message(message, &self.prepared);
        if message.role() == Role::User {
            self.last_input_turn = Some(message.turn);
            // A user message that arrives before the evaluation ends is answered, if an answer is left.
            if matches!(self.phase, Phase::Finish(_)) && self.may_ask() && message.turn >= self.turns {
                self.phase = Phase::Ask;
            }
        }
    }

    fn may_ask(&self) -> bool {
        self.turns < self.prepared.agent.options.most_turns()
    }

    /// Whether there is a user message since the last answer, which the policy has not seen.
    fn has_unseen_message(&self) -> bool {
        self.last_input_turn.is_some_and(|turn| turn >= self.turns) && self.turns > 0
    }

    fn add_answer(&mut self, messages: &[Arc<InnerMessage>]) {
        let Some(first) = messages.first() else { return };
        self.turns = self.turns.max(first.turn);
        let is_stopped = |message: &Arc<InnerMessage>| {
            message.provider.as_ref().is_some_and(|sidecar| sidecar.finish == Some(Finish::Interrupted))
        };
        let incomplete = match TurnState::of(messages) {
            // A person stopped it. The next request shows how far it came.
            TurnState::Interrupted if messages.iter().any(is_stopped) => Some(feedback::stopped()),
            TurnState::Interrupted => {
                self.phase = Phase::Ask;
                return;
            }
            TurnState::CutOff if self.accepted != Some(first.turn) => Some(feedback::cut_off()),
            _ => None,
        };
        let texts = messages.iter().filter(|message| matches!(message.message.content, Content::Parts(_)));
        let texts: Vec<String> = texts.map(|message| message.content()).collect();
        let calls = messages.iter().filter_map(|message| {
            let call = message.message.option_call().filter(|call| call.path.is_none())?;
            Some(PendingCall {
                call_id: call.invocation_id,
                name: call.option_name.clone(),
                arguments: call.arguments.clone(),
                turn: message.turn,
                step_num: message.message.step_num,
                made_at: None,
                refusal: Some(NOT_IN_ANSWERS.to_owned()),
            })
        });
        let origin = Origin { evaluation: self.evaluation, turn: first.turn, answer: first.message_id };
        let answer = Answer { origin, text: texts.join("\n"), at: first.created_at, incomplete };
        self.phase = Phase::Answered(answer, calls.collect());
    }

    /// Finds the program of an answer, and records it before it runs.
    fn begin(&mut self, answer: Answer) -> Option<MachineAction> {
        let found = match &answer.incomplete {
            Some(error) => Err(error.clone()),
            None => extract(&answer.text).map_err(|none| TurnError {
                kind: "no_program".to_owned(),
                message: feedback::no_program(none),
            }),
        };
        match found {
            Ok(source) => {
                let program = self.program(&answer, source.clone());
                let run = Run::new(answer.origin, source, Vec::new(), HashMap::new());
                self.seen.answer(answer.text);
                self.phase = Phase::Running(Box::new(run), Box::new(program.clone()));
                Some(MachineAction::Record(vec![program.into()]))
            }
            Err(error) => {
                let turn = Turn {
                    number: answer.origin.turn,
                    answer: answer.text,
                    success: false,
                    error: Some(error),
                    ..Turn::default()
                };
                self.end_turn(turn);
                None
            }
        }
    }

    fn program(&self, answer: &Answer, source: String) -> ProgramStarted {
        let seed_call = CallId::of_program(answer.origin.answer, "chance");
        ProgramStarted {
            evaluation_id: self.evaluation,
            turn: answer.origin.turn,
            source: Some(source.into()),
            now: answer.at,
            seed: self.seed.rng_for(seed_call).next_u64(),
            memory: self.left.memory_turn,
            interpreter: INTERPRETER.to_owned(),
            inputs: Some(self.prepared.inputs),
            extra: Extra::default(),
        }
    }

    fn inputs(&self, program: &ProgramStarted) -> Inputs {
        Inputs {
            history: self.left.history.clone(),
            journal: self.left.tasks.clone(),
            now: i64::try_from(program.now.unix_millis()).unwrap_or(i64::MAX),
            seed: program.seed,
            ..self.prepared.inputs_with(self.left.memory.clone())
        }
    }

    /// Runs a program until it needs an action.
    fn run(
        &mut self,
        mut run: Box<Run>,
        program: Box<ProgramStarted>,
        stop: Option<&Arc<AtomicBool>>,
    ) -> Progress {
        if !run.is_started() {
            let inputs = self.inputs(&program);
            if let Err(error) = run.start(&self.prepared, inputs) {
                // A program that does not compile has made no calls, unless it compiled before.
                if run.calls.is_empty() {
                    self.settle_error(*run, &error, Vec::new());
                } else {
                    let error = feedback::diverged(&error.to_string());
                    self.phase = Phase::Abandoned(run, error, false);
                }
                return Progress::Settled;
            }
        }
        match run.step(&self.prepared, stop) {
            Step::Act(action) => {
                self.phase = Phase::Running(run, program);
                Progress::Wants(action)
            }
            Step::Finished(finished) => {
                self.settle(*run, *finished);
                Progress::Settled
            }
            Step::Diverged(diverged) => {
                self.phase = Phase::Abandoned(run, feedback::diverged(&diverged.to_string()), false);
                Progress::Settled
            }
            Step::Stopped => {
                run.start_over();
                self.phase = Phase::Running(run, program);
                Progress::Stopped
            }
        }
    }

    /// Ends a program that is not resumed: its pending calls are refused, then the turn fails.
    fn abandon(&mut self, run: Box<Run>, error: TurnError, is_refused: bool) -> Option<MachineAction> {
        let refused = |made: &ProgramCall| PendingCall {
            refusal: Some(NOT_ANY_MORE.to_owned()),
            ..made.pending(run.origin.turn)
        };
        let refused: Vec<PendingCall> = run.unfinished().map(refused).collect();
        if !refused.is_empty() && !is_refused {
            self.phase = Phase::Abandoned(run, error, true);
            return Some(MachineAction::Call(refused));
        }
        let error = TurnError { message: feedback::with_calls(&error.message, &run.calls), ..error };
        self.settle_failure(*run, error, Vec::new());
        None
    }

    /// Ends the turn, which is recorded next.
    fn end_turn(&mut self, turn: Turn) {
        let data = serde_json::to_value(&turn).unwrap_or_default();
        let record = TurnFinished::new(self.evaluation, turn.number, data);
        self.phase = Phase::Ended(Box::new(turn), Box::new(record.into()));
    }

    /// Continues after a recorded turn.
    fn after_turn(&mut self, turn: Arc<Turn>, ending: Option<EvaluationResult>) {
        self.seen.push(turn);
        let is_unseen = self.has_unseen_message() && self.may_ask();
        self.phase = match ending.filter(|_| !is_unseen) {
            Some(ending) => Phase::Finish(ending),
            None => Phase::Ask,
        };
    }
}

/// The progress of a program.
enum Progress {
    /// It needs this action.
    Wants(MachineAction),
    /// It has ended, and the phase says what is next.
    Settled,
    /// It was stopped by the caller.
    Stopped,
}

impl Machine for LispMachine {
    fn handle(&mut self, event: MachineEvent) {
        match event {
            MachineEvent::MessageAdded(message) => self.add_message(&message),
            MachineEvent::Answered { messages, .. } => self.add_answer(&messages),
            MachineEvent::CallEnded { call, result } => {
                let Some(result) = result.message.option_result() else { return };
                match &mut self.phase {
                    Phase::Running(run, _) | Phase::Abandoned(run, ..) => {
                        run.set_result(call, result);
                    }
                    Phase::Answered(_, calls) => calls.retain(|wanted| wanted.call_id != call),
                    _ => {}
                }
            }
        }
    }

    fn next(&mut self) -> MachineAction {
        loop {
            // Without a stop flag, a program is never stopped.
            if let Some(action) = self.advance(None) {
                return action;
            }
        }
    }

    fn next_unless(&mut self, stop: &Arc<AtomicBool>) -> Option<MachineAction> {
        self.advance(Some(stop))
    }

    fn takes_long(&self) -> bool {
        matches!(self.phase, Phase::Running(..))
    }

    fn show(&self, answers_left: Option<u64>) -> Option<VisibleHistory> {
        Some(self.seen.show(&self.prepared, self.evaluation, answers_left))
    }
}

impl LispMachine {
    /// Advances from phase to phase until an action is needed, or until a program is stopped.
    fn advance(&mut self, stop: Option<&Arc<AtomicBool>>) -> Option<MachineAction> {
        loop {
            let done = match std::mem::replace(&mut self.phase, Phase::Ask) {
                Phase::Ask if self.may_ask() => Some(MachineAction::Ask),
                Phase::Ask => {
                    let message = feedback::no_answer(self.turns, self.seen.last_error());
                    Some(MachineAction::Finish(EvaluationResult::failed(ErrorCode::MaxTurns, message)))
                }
                Phase::Answered(answer, calls) if calls.is_empty() => self.begin(answer),
                Phase::Answered(answer, calls) => {
                    self.phase = Phase::Answered(answer, calls.clone());
                    Some(MachineAction::Call(calls))
                }
                Phase::Running(run, program) => match self.run(run, program, stop) {
                    Progress::Wants(action) => Some(action),
                    Progress::Settled => None,
                    Progress::Stopped => return None,
                },
                Phase::Abandoned(run, error, is_refused) => self.abandon(run, error, is_refused),
                Phase::Ended(turn, record) => {
                    let turn = Arc::new(*turn);
                    let ending = self.ending_of(&turn);
                    self.after_turn(turn, ending);
                    Some(MachineAction::Record(vec![*record]))
                }
                Phase::Finish(ending) => {
                    self.phase = Phase::Finish(ending.clone());
                    Some(MachineAction::Finish(ending))
                }
            };
            if done.is_some() {
                return done;
            }
        }
    }
}
