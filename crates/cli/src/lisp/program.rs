//! `backstitch lisp run`.

use std::io::Read;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use backstitch_lisp::{Engine, Error, Finished, Inputs, Outcome, Request, Signal, Value, to_edn};
use serde_json::{Value as Json, json};

use super::{Given, now_millis};

pub(super) fn run(file: &Path, given: &Given, as_json: bool) -> anyhow::Result<ExitCode> {
    let mut source = String::new();
    if file.as_os_str() == "-" {
        std::io::stdin().read_to_string(&mut source).context("cannot read standard input")?;
    } else {
        source = std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    }
    let inputs =
        Inputs { data: given.data()?, limits: given.limits(), now: now_millis(), ..Inputs::default() };
    let (finished, error) = match evaluate(&Engine::new(), &source, inputs) {
        Ok(finished) => {
            let error = finished.result.as_ref().err().cloned();
            (Some(finished), error)
        }
        Err(error) => (None, Some(error)),
    };
    if as_json {
        println!("{}", answer(finished.as_ref(), error.as_ref()));
    } else {
        for print in finished.iter().flat_map(|finished| &finished.prints) {
            println!("{print}");
        }
        match (&finished, &error) {
            (_, Some(error)) => eprintln!("{}", error.render()),
            (Some(Finished { result: Ok(value), .. }), None) => println!("{}", to_edn(value)),
            _ => {}
        }
    }
    let failed = error.is_some() || finished.is_some_and(|finished| finished.signal == Some(Signal::Fail));
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Compiles and runs a program that has no tools, and so never waits.
pub(super) fn evaluate(engine: &Engine, source: &str, inputs: Inputs) -> Result<Finished, Error> {
    let program = engine.compile(source, &inputs)?;
    let mut machine = engine.start(&program, inputs);
    loop {
        match machine.run() {
            Outcome::Finished(finished) => return Ok(*finished),
            Outcome::Suspended(requests) => {
                for request in requests {
                    let answer = match &request {
                        // A task needs no record here, because nothing is ever run again.
                        Request::Record(_) => Ok(Value::Nil),
                        Request::Tool(_) => Err("there are no tools here".to_owned()),
                    };
                    machine.resume(request.path(), answer);
                }
            }
        }
    }
}

/// What a program gave, as JSON.
pub(super) fn answer(finished: Option<&Finished>, error: Option<&Error>) -> Json {
    let mut answer = json!({"v": 1});
    match (finished.map(|finished| &finished.result), error) {
        (Some(Ok(value)), None) => answer["value"] = to_edn(value).into(),
        (_, Some(error)) => {
            answer["error"] = json!({
                "kind": error.kind().name(),
                "message": error.message(),
                "line": error.line(),
                "column": error.column(),
                "hint": error.advice(),
            });
        }
        _ => {}
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
