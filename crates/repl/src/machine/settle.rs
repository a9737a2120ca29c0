//! The outcome of an ended program: a turn, and perhaps the end of the evaluation.

use std::sync::Arc;

use backstitch_core::code::ErrorCode;
use backstitch_core::machine::EvaluationResult;
use backstitch_core::message::OptionResult;
use backstitch_core::storable;
use backstitch_lisp::{
    Error, Memory, ProgramResult, Signal, Truncation, Value, from_json, restore_changes, store_changes,
    to_clojure_without_hidden, to_json,
};
use serde_json::Value as Json;

use super::feedback;
use super::run::{ProgramCall, Run, json_of, too_large};
use super::{LispMachine, LispMachinery};
use crate::agent::CompiledAgent;
use crate::firewall::Firewall;
use crate::mission::without_firewalled;
use crate::signature::mismatches;
use crate::turn::{
    Excerpt, MemoryChange, MemoryExtent, StoredMemory, Turn, TurnCall, TurnCallOutcome, TurnError, TurnSignal,
};

/// The kind of the error of a turn whose returned value does not fit.
const INVALID_ANSWER: &str = ErrorCode::InvalidAnswer.as_str();

impl LispMachine {
    /// Ends the turn of a program that has ended.
    pub(super) fn settle(&mut self, run: Run, finished: ProgramResult) {
        let ProgramResult { result, signal, prints, memory, defined, .. } = finished;
        let value = match result {
            Ok(value) => value,
            Err(error) => return self.settle_error(run, &error, prints),
        };
        let is_single = self.prepared.agent.options.most_turns() == 1;
        let signal = match signal {
            Some(Signal::Return) => Some(TurnSignal::Return),
            Some(Signal::Fail) => Some(TurnSignal::Fail),
            None => is_single.then_some(TurnSignal::Return),
        };
        if signal == Some(TurnSignal::Return)
            && let Err(error) = self.answer_of(&value)
        {
            return self.settle_failure(run, error, prints);
        }
        let limits = &self.prepared.agent.options.limits;
        let stored = store_changes(&self.left.memory, &memory, std::slice::from_ref(&value), limits);
        let document = match stored {
            Ok(document) => document,
            Err(error) => return self.settle_error(run, &error, prints),
        };
        let sample = self.prepared.agent.options.compression.sample();
        let mut change = MemoryChange::between(&self.left.memory, &memory, &defined, sample);
        change.stored = Some(StoredMemory { extent: MemoryExtent::Delta, document, object: None });
        let number = run.origin.turn;
        let mut turn = self.turn_of(run, prints);
        turn.success = true;
        turn.signal = signal;
        turn.result = Some(excerpt_of(&value, sample, &self.prepared.firewall));
        turn.memory = change;
        self.leave(memory, number, value);
        self.end_turn(turn);
    }

    /// Keeps the results of a successful turn for the next one.
    pub(super) fn leave(&mut self, memory: Memory, turn: u64, result: Value) {
        self.left.memory = memory;
        self.left.memory_turn = Some(turn);
        self.left.remember(result);
    }

    /// Restores the results of a recorded turn.
    pub(super) fn restore(&mut self, turn: &Turn) -> Result<(), String> {
        if let Some((memory, result)) = left_by(turn, &self.left.memory, &self.prepared)? {
            self.leave(memory, turn.number, result);
        }
        Ok(())
    }

    pub(super) fn settle_error(&mut self, run: Run, error: &Error, prints: Vec<String>) {
        let located = error.clone().locate(&run.source);
        let kind = located.kind().name().to_owned();
        // The rendered text begins with the kind.
        let message = located.render();
        self.settle_failure(run, TurnError { kind, message }, prints);
    }

    /// Ends a failed turn: the definitions of its program are dropped, and its calls are kept.
    pub(super) fn settle_failure(&mut self, run: Run, error: TurnError, prints: Vec<String>) {
        let mut turn = self.turn_of(run, prints);
        let message = self.prepared.firewall.hide(feedback::bounded(error.message));
        turn.error = Some(TurnError { message, ..error });
        self.end_turn(turn);
    }

    /// The turn of a program, however it ended. Its finished tasks are kept.
    fn turn_of(&mut self, run: Run, prints: Vec<String>) -> Turn {
        for (id, value) in run.done_tasks() {
            if let Ok(id) = backstitch_lisp::read_edn(id, &self.prepared.agent.options.limits) {
                self.left.tasks.insert(id, value.clone());
            }
        }
        let limits = &self.prepared.agent.options.limits;
        let compression = &self.prepared.agent.options.compression;
        let shown = |json: &Json, sample: Truncation| {
            let json = without_firewalled(json);
            from_json(&json, limits).map(|value| Excerpt::of(&json, &value, sample))
        };
        let outcome = |result: &OptionResult| {
            let json = json_of(result, &self.prepared)?;
            shown(json, compression.sample()).map_err(|error| too_large(&error))
        };
        let call = |made: ProgramCall| TurnCall {
            call_id: made.call_id,
            path: Some(made.path),
            name: made.name,
            arguments: shown(&Json::Object(made.arguments), compression.arguments())
                .unwrap_or_else(|_| Excerpt::Sample { text: "...".to_owned(), label: "map".to_owned() }),
            outcome: match made.result {
                None => TurnCallOutcome::Open,
                Some(result) => outcome(&result).map_or_else(TurnCallOutcome::Error, TurnCallOutcome::Result),
            },
        };
        Turn {
            number: run.origin.turn,
            answer: self.seen.take_answer(),
            program: Some(run.source),
            prints,
            tool_calls: run.calls.into_iter().map(call).collect(),
            ..Turn::default()
        }
    }

    /// The result of the evaluation, if it ends with a turn.
    pub(super) fn ending_of(&self, turn: &Arc<Turn>) -> Option<EvaluationResult> {
        let value = self.left.history.last();
        match (turn.signal?, value) {
            (TurnSignal::Return, Some(value)) => {
                // It fitted before the turn was recorded. Under another signature it may not.
                Some(match self.answer_of(value) {
                    Ok(output) => EvaluationResult::completed(Some(output)),
                    Err(error) => EvaluationResult::failed(error.kind, error.message),
                })
            }
            (TurnSignal::Fail, Some(value)) => {
                let reason = match value {
                    Value::String(text) => text.as_str().to_owned(),
                    other => {
                        let most = Truncation { characters: 500, ..Truncation::SAMPLE };
                        to_clojure_without_hidden(other, most)
                    }
                };
                Some(EvaluationResult::failed(ErrorCode::AgentFailed, reason))
            }
            (_, None) => None,
        }
    }

    /// The answer of a returned value, if it fits.
    fn answer_of(&self, value: &Value) -> Result<Json, TurnError> {
        let invalid = |message: String| TurnError { kind: INVALID_ANSWER.to_owned(), message };
        let json = to_json(value, self.prepared.schema.as_ref())
            .map_err(|error| invalid(feedback::not_json(error.message(), error.advice())))?;
        storable::check(&json).map_err(|problem| invalid(feedback::not_json(&problem.to_string(), None)))?;
        let Some(signature) = &self.prepared.agent.signature else { return Ok(json) };
        let mut found = mismatches(&json, &signature.output);
        if signature.schema.is_some() {
            // The schema decides, and the types say in the words of the language what is wrong.
            match &self.prepared.agent.answer_check {
                Some(check) => {
                    return match check.problems(&json) {
                        Some(problems) => Err(invalid(feedback::invalid_answer(signature, &problems))),
                        None => Ok(json),
                    };
                }
                None => found.retain(|mismatch| !mismatch.is_extra()),
            }
        }
        if found.is_empty() { Ok(json) } else { Err(invalid(feedback::mismatched(signature, &found))) }
    }
}

/// The memory after a recorded turn and its result, if it stored any.
fn left_by(
    turn: &Turn,
    before: &Memory,
    prepared: &CompiledAgent,
) -> Result<Option<(Memory, Value)>, String> {
    let Some(stored) = turn.memory.stored.as_ref().filter(|_| turn.success) else { return Ok(None) };
    if stored.object.is_some() {
        return Err("its memory was not fetched".to_owned());
    }
    let mut inputs = prepared.inputs_with(match stored.extent {
        MemoryExtent::Delta => before.clone(),
        MemoryExtent::Whole => Memory::new(),
    });
    let values = restore_changes(&stored.document, &prepared.engine, &mut inputs)
        .map_err(|error| error.message().to_owned())?;
    Ok(Some((inputs.memory, values.into_iter().next().unwrap_or_default())))
}

impl LispMachinery {
    /// The complete results of the turns of one evaluation, of which the turns may only keep samples. `None`
    /// for a turn that failed, or that this agent cannot restore.
    pub fn results(&self, turns: &[Turn]) -> Vec<Option<Value>> {
        let mut memory = Memory::new();
        let result = |turn: &Turn| {
            let (after, result) = left_by(turn, &memory, &self.0).ok().flatten()?;
            memory = after;
            Some(result)
        };
        turns.iter().map(result).collect()
    }
}

/// The excerpt of a result, without what no prompt may show.
fn excerpt_of(value: &Value, sample: Truncation, firewall: &Firewall) -> Excerpt {
    let json = to_json(value, None).ok().filter(|json| storable::check(json).is_ok());
    // Only what may be kept whole is searched: a long list of texts, with a long list of values to hide, takes long.
    let short = json.map(|json| without_firewalled(&json)).filter(Excerpt::fits_whole);
    let excerpt = match short {
        Some(json) => Excerpt::of(&firewall.hide_in(json), value, sample),
        None => Excerpt::sample(value, sample),
    };
    match excerpt {
        Excerpt::Sample { text, label } => {
            Excerpt::Sample { text: firewall.hide(text), label: firewall.hide(label) }
        }
        whole => whole,
    }
}
