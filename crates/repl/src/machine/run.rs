//! A running program: its requests are answered from the journal if they are recorded, and become actions
//! otherwise.
//!
//! A program suspends at calls of tools, perhaps in several branches at once. All requests of a suspension
//! are a *wave*, and the program continues only when every request of the wave has its answer. So a program
//! that runs again after an interruption reaches the same waves, whatever part of one was recorded, and makes
//! the same calls at the same places.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use backstitch_core::extra::Extra;
use backstitch_core::id::{CallId, EvaluationId, MessageId};
use backstitch_core::journal::{ProgramStarted, RecordBody, TaskFinished};
use backstitch_core::machine::{MachineAction, PendingCall};
use backstitch_core::message::{Arguments, OptionResult};
use backstitch_core::storable::check_object;
use backstitch_lisp::{
    CallPath, Error, ErrorKind, Inputs, Machine, MachineOutcome, Memory, ProgramResult, Request, TaskRecord,
    ToolCall, Value, from_json, store_value, to_edn_within, to_json,
};
use serde_json::{Map as Object, Value as Json};

use super::feedback;
use crate::agent::CompiledAgent;

/// The maximum length of the id of a task, in bytes.
const LONGEST_TASK_ID: usize = 1024;

/// A call that a program made.
#[derive(Debug, Clone)]
pub(crate) struct ProgramCall {
    pub(crate) call_id: CallId,
    pub(crate) path: String,
    pub(crate) name: String,
    pub(crate) arguments: Object<String, Json>,
    /// The result, once it is recorded.
    pub(crate) result: Option<OptionResult>,
    /// Whether the call was requested from the runtime.
    pub(crate) is_wanted: bool,
    /// Whether the program has reached the call since it was started.
    pub(crate) is_reached: bool,
}

impl ProgramCall {
    /// The action that makes the call.
    pub(crate) fn pending(&self, turn: u64) -> PendingCall {
        PendingCall {
            call_id: self.call_id,
            name: self.name.clone(),
            arguments: Arguments::from_object(self.arguments.clone()),
            turn,
            step_num: Some(turn),
            made_at: None,
            refusal: None,
        }
    }
}

/// A program that runs again behaves differently.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the program was interrupted, and when it ran again it did not do what it had done before: {what}")]
pub(crate) struct ReplayDivergence {
    pub(crate) what: String,
}

/// The outcome of a step of a program.
pub(crate) enum Step {
    /// This action has to be done first.
    Act(MachineAction),
    /// The program has ended.
    Finished(Box<ProgramResult>),
    /// The program behaved differently than before.
    Diverged(ReplayDivergence),
    /// The program was stopped by the caller.
    Stopped,
}

/// The origin of a program.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Origin {
    pub(crate) evaluation: EvaluationId,
    pub(crate) turn: u64,
    /// The answer that contains it.
    pub(crate) answer: MessageId,
}

/// A program, with its calls and tasks.
pub(crate) struct Run {
    pub(crate) origin: Origin,
    pub(crate) source: String,
    machine: Option<Machine>,
    /// The calls, in the order in which they were made.
    pub(crate) calls: Vec<ProgramCall>,
    /// The finished tasks of this program, by path.
    tasks: HashMap<String, (String, Value)>,
    wave: Vec<Request>,
    answers: HashMap<CallPath, Result<Value, String>>,
}

impl Run {
    /// Creates a run, with the recorded calls and tasks of the program.
    pub(crate) fn new(
        origin: Origin,
        source: String,
        calls: Vec<ProgramCall>,
        tasks: HashMap<String, (String, Value)>,
    ) -> Self {
        Self { origin, source, machine: None, calls, tasks, wave: Vec::new(), answers: HashMap::new() }
    }

    /// Compiles and starts the program, from the beginning.
    pub(crate) fn start(&mut self, prepared: &CompiledAgent, inputs: Inputs) -> Result<(), Error> {
        let program = prepared.engine.compile(&self.source, &inputs)?;
        self.machine = Some(prepared.engine.start(&program, inputs));
        Ok(())
    }

    pub(crate) fn is_started(&self) -> bool {
        self.machine.is_some()
    }

    /// Sets the result of a call. Returns whether the call is one of this program.
    pub(crate) fn set_result(&mut self, call: CallId, result: &OptionResult) -> bool {
        let made = self.calls.iter_mut().find(|made| made.call_id == call);
        made.map(|made| made.result = Some(result.clone())).is_some()
    }

    /// The calls without a result.
    pub(crate) fn unfinished(&self) -> impl Iterator<Item = &ProgramCall> {
        self.calls.iter().filter(|made| made.result.is_none())
    }

    /// The finished tasks.
    pub(crate) fn done_tasks(&self) -> impl Iterator<Item = &(String, Value)> {
        self.tasks.values()
    }

    /// Runs until an action is needed, or the program ends.
    pub(crate) fn step(&mut self, prepared: &CompiledAgent, stop: Option<&Arc<AtomicBool>>) -> Step {
        loop {
            if self.wave.is_empty() {
                let Some(machine) = &mut self.machine else {
                    return Step::Finished(broken("it was never started"));
                };
                if let Some(stop) = stop.cloned() {
                    machine.stop_when(move || stop.load(Ordering::Relaxed));
                }
                // A bug of the interpreter must not make a session impossible to open.
                match catch_unwind(AssertUnwindSafe(|| machine.run())) {
                    Ok(MachineOutcome::Finished(finished)) if is_stopped(&finished) => return Step::Stopped,
                    Ok(MachineOutcome::Finished(finished)) => return self.finish(finished),
                    Ok(MachineOutcome::Suspended(requests)) => self.wave = requests,
                    Err(_) => return Step::Finished(broken("the interpreter has failed")),
                }
            }
            match self.answer_wave(prepared) {
                Ok(Some(action)) => return Step::Act(action),
                Ok(None) => {}
                Err(diverged) => return Step::Diverged(diverged),
            }
            let Some(machine) = &mut self.machine else { continue };
            for request in std::mem::take(&mut self.wave) {
                if let Some(answer) = self.answers.remove(request.path()) {
                    machine.resume(request.path(), answer);
                }
            }
        }
    }

    /// Resets the program, which then starts again. Its calls and tasks so far are recorded, and are not
    /// repeated.
    pub(crate) fn start_over(&mut self) {
        self.machine = None;
        self.wave.clear();
        self.answers.clear();
        for made in &mut self.calls {
            (made.is_wanted, made.is_reached) = (false, false);
        }
    }

    /// Finds answers for all requests of the wave. Missing ones become an action.
    fn answer_wave(&mut self, prepared: &CompiledAgent) -> Result<Option<MachineAction>, ReplayDivergence> {
        let (mut wanted, mut records) = (Vec::new(), Vec::new());
        for request in self.wave.clone() {
            if self.answers.contains_key(request.path()) {
                continue;
            }
            match request {
                Request::Tool(call) => wanted.extend(self.answer_call(&call, prepared)?),
                Request::Record(task) => records.extend(self.answer_task(&task, prepared)?),
            }
        }
        if !records.is_empty() {
            // Each call is requested once. These are not requested now, so that they are after the records.
            for one in &wanted {
                self.unwant(one);
            }
            return Ok(Some(MachineAction::Record(records)));
        }
        if !wanted.is_empty() {
            return Ok(Some(MachineAction::Call(wanted)));
        }
        let is_waiting = self.wave.iter().any(|request| !self.answers.contains_key(request.path()));
        Ok(is_waiting.then_some(MachineAction::Wait))
    }

    fn unwant(&mut self, wanted: &PendingCall) {
        if wanted.made_at.is_some() {
            self.calls.retain(|made| made.call_id != wanted.call_id);
        } else if let Some(made) = self.calls.iter_mut().find(|made| made.call_id == wanted.call_id) {
            made.is_wanted = false;
        }
    }

    fn answer_call(
        &mut self,
        call: &ToolCall,
        prepared: &CompiledAgent,
    ) -> Result<Option<PendingCall>, ReplayDivergence> {
        let path = call.path.to_string();
        let arguments = match arguments_of(call, prepared) {
            Ok(arguments) => arguments,
            Err(message) => return self.refuse(&call.path, message),
        };
        let Origin { turn, answer, .. } = self.origin;
        if let Some(made) = self.calls.iter_mut().find(|made| made.path == path) {
            if made.name != *call.name || made.arguments != arguments {
                let what = format!(
                    "at {path} it called {} with {}, and now it calls {} with {}",
                    made.name,
                    feedback::shown(&made.arguments),
                    call.name,
                    feedback::shown(&arguments),
                );
                return Err(ReplayDivergence { what });
            }
            made.is_reached = true;
            return Ok(match &made.result {
                Some(result) => {
                    let result = value_of(result, prepared);
                    self.answers.insert(call.path.clone(), result);
                    None
                }
                None if made.is_wanted => None,
                None => {
                    made.is_wanted = true;
                    Some(made.pending(turn))
                }
            });
        }
        let label = format!("{path} {} {}", call.name, Json::Object(arguments.clone()));
        let made = ProgramCall {
            call_id: CallId::of_program(answer, &label),
            path: path.clone(),
            name: call.name.to_string(),
            arguments,
            result: None,
            is_wanted: true,
            is_reached: true,
        };
        let wanted = PendingCall { made_at: Some(path), ..made.pending(turn) };
        self.calls.push(made);
        Ok(Some(wanted))
    }

    /// Answers a request with an error.
    fn refuse<T>(&mut self, path: &CallPath, message: String) -> Result<Option<T>, ReplayDivergence> {
        self.answers.insert(path.clone(), Err(message));
        Ok(None)
    }

    fn answer_task(
        &mut self,
        task: &TaskRecord,
        prepared: &CompiledAgent,
    ) -> Result<Option<RecordBody>, ReplayDivergence> {
        let path = task.path.to_string();
        let id = match to_edn_within(&task.id, LONGEST_TASK_ID) {
            Ok(id) => id,
            Err(_) => {
                let message = format!("the id of a task is longer than {LONGEST_TASK_ID} bytes");
                return self.refuse(&task.path, message);
            }
        };
        if let Some((known, _)) = self.tasks.get(&path) {
            if *known != id {
                return Err(ReplayDivergence {
                    what: format!("at {path} it did the task {known}, and now it does {id}"),
                });
            }
            self.answers.insert(task.path.clone(), Ok(Value::Nil));
            return Ok(None);
        }
        let value = match store_value(&task.value, &prepared.agent.options.limits) {
            Ok(value) => value,
            Err(error) => return self.refuse(&task.path, error.message().to_owned()),
        };
        self.answers.insert(task.path.clone(), Ok(Value::Nil));
        self.tasks.insert(path.clone(), (id.clone(), task.value.clone()));
        let Origin { evaluation, turn, .. } = self.origin;
        let record = TaskFinished {
            evaluation_id: evaluation,
            turn,
            path,
            task: id,
            value: value.into(),
            extra: Extra::default(),
        };
        Ok(Some(record.into()))
    }

    /// Checks that a program has reached all of its recorded calls at its end.
    fn finish(&mut self, finished: Box<ProgramResult>) -> Step {
        match self.calls.iter().find(|made| !made.is_reached) {
            Some(made) => Step::Diverged(ReplayDivergence {
                what: format!("at {} it called {}, and now it ends without", made.path, made.name),
            }),
            None => Step::Finished(finished),
        }
    }
}

/// The arguments of a call as JSON, in the spelling of the schema of the tool.
fn arguments_of(call: &ToolCall, prepared: &CompiledAgent) -> Result<Object<String, Json>, String> {
    let schema = prepared.spec(&call.name).map(|spec| &spec.parameters);
    match to_json(&call.arguments, schema) {
        Ok(Json::Object(arguments)) => {
            check_object(&arguments).map_err(|problem| problem.to_string())?;
            Ok(arguments)
        }
        Ok(_) => Ok(Object::new()),
        Err(error) => {
            let advice = error.advice().map(|advice| format!(" ({advice})")).unwrap_or_default();
            Err(format!("its arguments cannot be written as JSON: {}{advice}", error.message()))
        }
    }
}

/// The value of a result for the program.
pub(crate) fn value_of(result: &OptionResult, prepared: &CompiledAgent) -> Result<Value, String> {
    let json = json_of(result, prepared)?;
    from_json(json, &prepared.agent.options.limits).map_err(|error| too_large(&error))
}

/// The error for a result that exceeds the limits.
pub(crate) fn too_large(error: &Error) -> String {
    format!("its result: {}", error.message())
}

/// The JSON of a result for the program.
pub(crate) fn json_of<'r>(result: &'r OptionResult, prepared: &CompiledAgent) -> Result<&'r Json, String> {
    if result.is_error {
        let kind = result.error_type.as_deref().unwrap_or("failed");
        return Err(result.error_message.clone().unwrap_or_else(|| kind.to_owned()));
    }
    let Some(json) = result.result.inline() else { return Err("its result was not fetched".to_owned()) };
    Ok(match json.as_object() {
        // The message of a tool is for models that see results; a program uses the value.
        Some(both) if is_sentence_and_value(both) && !declares_sentence(prepared, &result.option_name) => {
            both.get("value").unwrap_or(json)
        }
        _ => json,
    })
}

fn is_sentence_and_value(object: &Object<String, Json>) -> bool {
    object.len() == 2 && object.get("message").is_some_and(Json::is_string) && object.contains_key("value")
}

fn declares_sentence(prepared: &CompiledAgent, tool: &str) -> bool {
    let output = prepared.spec(tool).and_then(|spec| spec.output.as_ref());
    output.and_then(|output| output.pointer("/properties/message")).is_some()
}

/// Whether a program was stopped by the caller.
fn is_stopped(finished: &ProgramResult) -> bool {
    finished.result.as_ref().is_err_and(|error| error.kind() == ErrorKind::Stopped)
}

fn broken(what: &str) -> Box<ProgramResult> {
    Box::new(ProgramResult {
        result: Err(Error::new(ErrorKind::Internal, what)),
        signal: None,
        prints: Vec::new(),
        memory: Memory::new(),
        defined: Vec::new(),
        fuel_used: 0,
        tool_calls: 0,
    })
}

/// Checks that a recorded program had the same interpreter and inputs.
pub(crate) fn same_inputs(program: &ProgramStarted, prepared: &CompiledAgent) -> Result<(), String> {
    if program.interpreter != backstitch_lisp::INTERPRETER {
        return Err(format!(
            "it was started by the interpreter {}, and this is {}",
            program.interpreter,
            backstitch_lisp::INTERPRETER
        ));
    }
    match program.inputs {
        Some(inputs) if inputs != prepared.inputs => {
            Err("its data, its tools or its limits are no longer what they were".to_owned())
        }
        _ => Ok(()),
    }
}
