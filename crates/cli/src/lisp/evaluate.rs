//! `backstitch lisp eval --jsonl`.

use std::io::{BufRead, Write};
use std::process::ExitCode;

use anyhow::Context;
use backstitch_lisp::{
    Engine, Error, ErrorKind, Inputs, Keyword, Limits, Map, Memory, Value, from_json, read_edn,
};
use serde::Deserialize;
use serde_json::{Value as Json, json};

use super::{now_millis, program};

/// One line of input: a program and its environment.
#[derive(Deserialize)]
struct Case {
    #[serde(default)]
    id: Json,
    program: String,
    #[serde(default)]
    data: Json,
    memory: Option<String>,
    turn_history: Option<String>,
    #[serde(default)]
    limits: serde_json::Map<String, Json>,
}

pub(super) fn run() -> anyhow::Result<ExitCode> {
    let engine = Engine::new();
    let mut output = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let line = line.context("cannot read standard input")?;
        if line.trim().is_empty() {
            continue;
        }
        let answer = match serde_json::from_str::<Case>(&line) {
            Ok(case) => evaluate(&engine, case),
            Err(error) => {
                json!({"v": 1, "id": null, "error": {"kind": "invalid_line", "message": error.to_string()}, "prints": []})
            }
        };
        writeln!(output, "{answer}").context("cannot write standard output")?;
        output.flush().context("cannot write standard output")?;
    }
    Ok(ExitCode::SUCCESS)
}

fn evaluate(engine: &Engine, case: Case) -> Json {
    let id = case.id.clone();
    let inputs = inputs(&case);
    let given = inputs.as_ref().ok().map(|inputs| inputs.memory.clone());
    let outcome = inputs.and_then(|inputs| program::evaluate(engine, &case.program, inputs));
    let (finished, mut value) = program::written(outcome);
    // A program that did not run leaves its memory unchanged.
    let memory = finished.as_ref().map(|finished| &finished.memory).or(given.as_ref()).map(memory_text);
    if let Some(Err(error)) = &memory {
        value = Err(error.clone());
    }
    let mut answer = program::answer(finished.as_ref(), &value);
    answer["id"] = id;
    if let Some(Ok(memory)) = memory {
        answer["memory"] = memory.into();
    }
    answer
}

fn memory_text(memory: &Memory) -> Result<String, Error> {
    let definitions = memory.definitions().into_iter();
    let memory: Map = definitions
        .map(|definition| (Value::Keyword(Keyword::new(&*definition.name)), definition.value.clone()))
        .collect();
    program::edn(&Value::Map(memory))
}

fn inputs(case: &Case) -> Result<Inputs, Error> {
    let limits = limits(&case.limits)?;
    let data = match from_json(&case.data, &limits)? {
        Value::Map(data) => data,
        Value::Nil => Map::new(),
        _ => return Err(invalid("data is a JSON object")),
    };
    let mut memory = Memory::new();
    match case.memory.as_deref().map(|text| read_edn(text, &limits)).transpose()? {
        None | Some(Value::Nil) => {}
        Some(Value::Map(definitions)) => {
            for (name, value) in &definitions {
                let name = match name {
                    Value::Keyword(name) => name.full().to_owned(),
                    Value::Symbol(name) => name.full().to_owned(),
                    Value::String(name) => name.to_string(),
                    _ => return Err(invalid("the names in memory are keywords, symbols or strings")),
                };
                memory.define(&name, value.clone(), None);
            }
        }
        Some(_) => return Err(invalid("memory is the text of a map")),
    }
    let history = match case.turn_history.as_deref().map(|text| read_edn(text, &limits)).transpose()? {
        None | Some(Value::Nil) => Vec::new(),
        Some(Value::Vector(results)) => results.iter().cloned().collect(),
        Some(_) => return Err(invalid("turn_history is the text of a vector")),
    };
    Ok(Inputs { data, memory, history, limits, now: now_millis(), ..Inputs::default() })
}

fn limits(given: &serde_json::Map<String, Json>) -> Result<Limits, Error> {
    let mut limits = Limits::default();
    for (name, value) in given {
        let number = value.as_u64().ok_or_else(|| invalid(&format!("the limit {name} is a whole number")))?;
        let size = usize::try_from(number).unwrap_or(usize::MAX);
        match name.as_str() {
            "fuel" => limits.fuel = number,
            "memory_bytes" => limits.memory_bytes = size,
            "stack_depth" => limits.stack_depth = size,
            "nesting_depth" => limits.nesting_depth = u32::try_from(number).unwrap_or(u32::MAX),
            "collection_size" => limits.collection_size = size,
            "string_bytes" => limits.string_bytes = size,
            "number_bits" => limits.number_bits = number,
            "print_calls" => limits.print_calls = size,
            "print_characters_per_call" => limits.print_characters_per_call = size,
            "print_characters" => limits.print_characters = size,
            "tool_calls" => limits.tool_calls = size,
            "parallelism" => limits.parallelism = size,
            _ => return Err(invalid(&format!("there is no limit {name}"))),
        }
    }
    Ok(limits)
}

fn invalid(message: &str) -> Error {
    Error::new(ErrorKind::InvalidForm, message)
}
