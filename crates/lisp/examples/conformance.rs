//! Runs a file of programs and compares each result with the expected one.
//!
//! The environment variable `LISP_CASES` names the file: one JSON object per line with `program`, `expect` or
//! `error`, and the inputs of the program. Without the variable, nothing is measured.

use backstitch_lisp::{
    Engine, Inputs, Limits, MachineOutcome, Map, Memory, Value, from_json, read_edn, to_edn,
};
use serde_json::Value as Json;

/// Converts a value to the file's notation: a character is a string, a sequence a vector, a ratio a double.
fn plain(value: &Value) -> Value {
    match value {
        Value::Character(character) => Value::string(character.to_string()),
        Value::Ratio(ratio) => Value::Float(ratio.to_f64()),
        Value::List(_) | Value::Sequence(_) | Value::Vector(_) => {
            let items = match value {
                Value::Vector(items) => items.iter().map(plain).collect(),
                _ => walk(value),
            };
            Value::vector(items)
        }
        Value::Map(map) => Value::Map(map.iter().map(|(key, value)| (plain(key), plain(value))).collect()),
        Value::Set(set) => Value::Set(set.iter().map(plain).collect()),
        Value::BigInteger(number) => {
            number.to_string().parse::<i64>().map_or_else(|_| value.clone(), Value::Integer)
        }
        other => other.clone(),
    }
}

fn walk(value: &Value) -> Vec<Value> {
    let mut items = Vec::new();
    let mut rest = value.clone();
    loop {
        match &rest {
            Value::List(list) => match list.node() {
                Some(node) => {
                    items.push(plain(node.first()));
                    let next = node.rest().clone();
                    rest = next;
                }
                None => return items,
            },
            Value::Sequence(sequence) => {
                items.push(plain(&sequence.first()));
                let next = sequence.rest();
                rest = next;
            }
            _ => return items,
        }
    }
}

struct Ran {
    result: Result<Value, String>,
}

fn run(engine: &Engine, case: &Json) -> Ran {
    let limits = Limits::default();
    let mut memory = Memory::new();
    if let Some(text) = case["memory"].as_str()
        && let Ok(Value::Map(map)) = read_edn(text, &limits)
    {
        for (key, value) in &map {
            let name = match key {
                Value::Keyword(name) => name.full().to_owned(),
                Value::Symbol(name) => name.full().to_owned(),
                Value::String(text) => text.to_string(),
                _ => continue,
            };
            memory.define(&name, value.clone(), None);
        }
    }
    let history = match case["turn_history"].as_str().map(|text| read_edn(text, &limits)) {
        Some(Ok(Value::Vector(items))) => items.iter().cloned().collect(),
        _ => Vec::new(),
    };
    let data = match from_json(&case["data"], &limits) {
        Ok(Value::Map(map)) => map,
        _ => Map::new(),
    };
    let inputs = Inputs { data, memory, history, limits, now: 1_700_000_000_000, ..Inputs::default() };
    let program = match engine.compile(case["program"].as_str().unwrap_or_default(), &inputs) {
        Ok(program) => program,
        Err(error) => return Ran { result: Err(error.render()) },
    };
    let mut machine = engine.start(&program, inputs);
    match machine.run() {
        MachineOutcome::Finished(finished) => Ran { result: finished.result.map_err(|error| error.render()) },
        _ => Ran { result: Err("suspended".to_owned()) },
    }
}

#[expect(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    clippy::print_stdout,
    reason = "a measurement, not a part of the crate"
)]
fn main() {
    let Ok(path) = std::env::var("LISP_CASES") else { return };
    let engine = Engine::new();
    let text = std::fs::read_to_string(path).expect("the file of cases can be read");
    let (mut agreeing, mut passed) = (0, 0);
    let mut other = 0;
    let mut other_passed = 0;
    for line in text.split('\n').filter(|line| !line.is_empty()) {
        let case: Json = serde_json::from_str(line).expect("each line is JSON");
        if std::env::var("LISP_TRACE").is_ok() {
            println!("{}", case["id"]);
        }
        let ran = run(&engine, &case);
        let expected = match case["clojure_agrees"].as_bool() {
            Some(false) if case["clojure_value"].is_string() => case["clojure_value"].as_str(),
            _ => case["expect"].as_str(),
        };
        let ok = match (&ran.result, expected) {
            (Ok(value), Some(expected)) if to_edn(value) == expected => true,
            (Ok(value), Some(expected)) => match read_edn(expected, &Limits::default()) {
                Ok(expected) => {
                    let (value, expected) = (plain(value), plain(&expected));
                    if case["order"].is_string() {
                        let sorted = |value: &Value| match value {
                            Value::Vector(items) => {
                                let mut items: Vec<Value> = items.iter().cloned().collect();
                                items.sort();
                                Value::vector(items)
                            }
                            other => other.clone(),
                        };
                        sorted(&value) == sorted(&expected)
                    } else {
                        to_edn(&value) == to_edn(&expected) || value == expected
                    }
                }
                Err(_) => to_edn(value) == expected,
            },
            (Err(_), None) => case["error"].is_string(),
            (Err(_), Some(text)) => text.starts_with("throws"),
            _ => false,
        };
        if case["clojure_agrees"].as_bool() == Some(true) {
            agreeing += 1;
            passed += usize::from(ok);
        } else {
            other += 1;
            other_passed += usize::from(ok);
        }
        if !ok {
            let got = match &ran.result {
                Ok(value) => to_edn(value),
                Err(error) => format!("ERROR {error}"),
            };
            println!(
                "FAIL {} agrees={} {}\n   want {:?} {:?} {}\n   got  {}",
                case["id"],
                case["clojure_agrees"],
                case["program"],
                case["expect"],
                case["error"],
                case["clojure_value"],
                got.replace('\n', " | ")
            );
        }
    }
    println!("agreeing {passed}/{agreeing}, others {other_passed}/{other}");
}
