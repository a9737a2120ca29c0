//! `backstitch lisp run`.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use backstitch::providers::{read_text, text_of};
use backstitch_lisp::{
    Engine, Error, Inputs, MachineOutcome, ProgramResult, Request, Signal, Value, to_edn_within,
};
use serde_json::{Value as Json, json};

use super::{ProgramInput, now_millis};
use crate::terminal;

/// Maximum size of a program file, in bytes. The limits of the language are usually lower.
const LARGEST_PROGRAM: u64 = 16 << 20;

pub(super) fn run(file: &Path, given: &ProgramInput, as_json: bool) -> anyhow::Result<ExitCode> {
    let source = if file.as_os_str() == "-" {
        text_of(std::io::stdin(), LARGEST_PROGRAM).context("cannot read standard input")?
    } else {
        read_text(file, LARGEST_PROGRAM).with_context(|| format!("cannot read {}", file.display()))?
    };
    let inputs =
        Inputs { data: given.data()?, limits: given.limits(), now: now_millis(), ..Inputs::default() };
    let (finished, value) = written(evaluate(&Engine::new(), &source, inputs));
    if as_json {
        terminal::data(&format!("{}\n", answer(finished.as_ref(), &value)));
    } else {
        for print in finished.iter().flat_map(|finished| &finished.prints) {
            terminal::data(&format!("{print}\n"));
        }
        match &value {
            Ok(text) => terminal::data(&format!("{text}\n")),
            Err(error) => eprintln!("{}", error.render()),
        }
    }
    let failed = value.is_err() || finished.is_some_and(|finished| finished.signal == Some(Signal::Fail));
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Compiles and runs a program without tools. Its requests are answered at once, so it runs to its end.
pub(super) fn evaluate(engine: &Engine, source: &str, inputs: Inputs) -> Result<ProgramResult, Error> {
    let program = engine.compile(source, &inputs)?;
    let mut machine = engine.start(&program, inputs);
    loop {
        match machine.run() {
            MachineOutcome::Finished(finished) => return Ok(*finished),
            MachineOutcome::Suspended(requests) => {
                for request in requests {
                    let answer = match &request {
                        // Tasks are not recorded here, because no program is ever run again.
                        Request::Record(_) => Ok(Value::Nil),
                        Request::Tool(_) => Err("there are no tools here".to_owned()),
                    };
                    machine.resume(request.path(), answer);
                }
            }
        }
    }
}

/// Maximum length of a value as text, in bytes. Parts that are shared in memory are repeated in text.
const LONGEST_TEXT: usize = 64 << 20;

/// Renders a value as EDN. Fails if the text is longer than [`LONGEST_TEXT`].
pub(super) fn edn(value: &Value) -> Result<String, Error> {
    to_edn_within(value, LONGEST_TEXT)
}

/// Returns the result of a program, if it ran, and its value as EDN or the error.
pub(super) fn written(
    outcome: Result<ProgramResult, Error>,
) -> (Option<ProgramResult>, Result<String, Error>) {
    match outcome {
        Ok(finished) => {
            let value = finished.result.as_ref().map_err(Error::clone).and_then(edn);
            (Some(finished), value)
        }
        Err(error) => (None, Err(error)),
    }
}

/// Renders the result of a program as JSON.
pub(super) fn answer(finished: Option<&ProgramResult>, value: &Result<String, Error>) -> Json {
    let mut answer = json!({"v": 1});
    match value {
        Ok(text) => answer["value"] = text.as_str().into(),
        Err(error) => {
            answer["error"] = json!({
                "kind": error.kind().name(),
                "message": error.message(),
                "line": error.line(),
                "column": error.column(),
                "hint": error.advice(),
            });
        }
    }
    answer["prints"] = finished.map(|finished| finished.prints.clone()).unwrap_or_default().into();
    if let Some(signal) = finished.and_then(|finished| finished.signal) {
        answer["signal"] = match signal {
            Signal::Return => "return".into(),
            Signal::Fail => "fail".into(),
        };
    }
    answer
}
