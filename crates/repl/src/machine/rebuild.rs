//! Rebuilds a machine from the journal, whatever its last record is.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use backstitch_core::journal::{InnerMessage, ProgramStarted, Role, TaskFinished};
use backstitch_core::machine::{EvaluationHistory, MachineError};
use backstitch_core::message::{Content, Large};
use backstitch_lisp::{Value, read_edn, restore_value};

use super::feedback;
use super::run::{ProgramCall, Run, same_inputs};
use super::{LispMachine, Phase};
use crate::agent::CompiledAgent;
use crate::extract::extract;
use crate::turn::Turn;

impl LispMachine {
    pub(super) fn rebuilt(
        prepared: Arc<CompiledAgent>,
        past: &EvaluationHistory,
    ) -> Result<Self, MachineError> {
        let evaluation = past.evaluation.evaluation_id;
        let mut machine = Self::new(prepared, past);
        machine.accepted = past.evaluation.accepted;
        for message in &past.messages {
            if matches!(message.role(), Role::System | Role::User) {
                machine.add_message(message);
            }
        }
        let mut answers: BTreeMap<u64, Vec<Arc<InnerMessage>>> = BTreeMap::new();
        for message in past.messages.iter().filter(|message| message.role() == Role::Assistant) {
            answers.entry(message.turn).or_default().push(message.clone());
        }
        let damaged = |what: String, reason: String| MachineError::Damaged { evaluation, what, reason };
        let mut last = None;
        for record in &past.turns {
            let name = || format!("turn {}", record.turn);
            let Some(data) = record.data.inline() else {
                return Err(damaged(name(), "it was not fetched".to_owned()));
            };
            let turn: Turn =
                serde_json::from_value(data.clone()).map_err(|error| damaged(name(), error.to_string()))?;
            machine.restore(&turn).map_err(|reason| damaged(name(), reason))?;
            machine.turns = machine.turns.max(turn.number);
            let turn = Arc::new(turn);
            machine.seen.push(turn.clone());
            last = Some(turn);
        }
        let done = last.as_ref().map_or(0, |turn| turn.number);
        // Tasks of ended turns are inputs of the next program; those of a running one are matched by their
        // path.
        for task in past.tasks.iter().filter(|task| task.turn <= done) {
            let (id, value) =
                machine.task(task).map_err(|reason| damaged(format!("task {}", task.task), reason))?;
            machine.left.tasks.insert(id, value);
        }
        match answers.last_key_value() {
            Some((turn, messages)) if *turn > done => machine.resume_turn(past, *turn, messages)?,
            _ => {
                let ending = last.as_ref().and_then(|turn| machine.ending_of(turn));
                let is_unseen = machine.has_unseen_message() && machine.may_ask();
                if let Some(ending) = ending.filter(|_| !is_unseen) {
                    machine.phase = Phase::Finish(ending);
                }
            }
        }
        Ok(machine)
    }

    /// Resumes an answer whose turn has not ended.
    fn resume_turn(
        &mut self,
        past: &EvaluationHistory,
        turn: u64,
        messages: &[Arc<InnerMessage>],
    ) -> Result<(), MachineError> {
        let evaluation = self.evaluation;
        let damaged = |what: &str, reason: String| MachineError::Damaged {
            evaluation,
            what: format!("{what} of turn {turn}"),
            reason,
        };
        self.add_answer(messages);
        let results: HashMap<_, _> = past
            .messages
            .iter()
            .filter_map(|message| message.message.option_result())
            .map(|result| (result.invocation_id, result))
            .collect();
        let mut calls = Vec::new();
        for message in messages {
            let Content::OptionCall(call) = &message.message.content else { continue };
            let Some(path) = &call.path else { continue };
            if call.arguments.stored().is_some() {
                return Err(damaged("a call", "its arguments were not fetched".to_owned()));
            }
            calls.push(ProgramCall {
                call_id: call.invocation_id,
                path: path.clone(),
                name: call.option_name.clone(),
                arguments: call.arguments.object().cloned().unwrap_or_default(),
                result: results.get(&call.invocation_id).map(|result| (*result).clone()),
                is_wanted: false,
                is_reached: false,
            });
        }
        let program = past.programs.iter().rfind(|program| program.turn == turn);
        if program.is_none() && calls.is_empty() {
            if let Phase::Answered(_, calls) = &mut self.phase {
                calls.retain(|wanted| !results.contains_key(&wanted.call_id));
            }
            return Ok(());
        }
        let Phase::Answered(answer, _) = std::mem::replace(&mut self.phase, Phase::Ask) else {
            return Ok(());
        };
        let Some(program) = program else {
            // An imported conversation contains calls, but not how their program was started.
            let source = extract(&answer.text).unwrap_or_default();
            let run = Box::new(Run::new(answer.origin, source, calls, HashMap::new()));
            self.seen.answer(answer.text);
            let error = feedback::not_run_again("its inputs are not recorded");
            self.phase = Phase::Abandoned(run, error, false);
            return Ok(());
        };
        let mut tasks = HashMap::new();
        for task in past.tasks.iter().filter(|task| task.turn == turn) {
            let (_, value) = self.task(task).map_err(|reason| damaged("a task", reason))?;
            tasks.insert(task.path.clone(), (task.task.clone(), value));
        }
        let Some(source) = program.source.as_ref().and_then(Large::inline).map(ToString::to_string) else {
            return Err(damaged("the program", "its text was not fetched".to_owned()));
        };
        let run = Box::new(Run::new(answer.origin, source, calls, tasks));
        self.seen.answer(answer.text);
        self.phase = match same_inputs(program, &self.prepared) {
            Ok(()) => Phase::Running(run, Box::new(ProgramStarted::clone(program))),
            Err(why) => Phase::Abandoned(run, feedback::not_run_again(&why), false),
        };
        Ok(())
    }

    /// The id and the value of a recorded task.
    fn task(&self, task: &TaskFinished) -> Result<(Value, Value), String> {
        let recorded = task.value.inline().ok_or("its value was not fetched")?;
        let limits = &self.prepared.agent.options.limits;
        let mut inputs = self.prepared.inputs_with(self.left.memory.clone());
        let id = read_edn(&task.task, limits).map_err(|error| error.message().to_owned())?;
        let value = restore_value(recorded, &self.prepared.engine, &mut inputs)
            .map_err(|error| error.message().to_owned())?;
        Ok((id, value))
    }
}
