//! The reference is correct and complete: each example of `docs/lisp.md` has the documented result, and no
//! name, kind of error or limit is missing.
//!
//! An example is the text up to a comment `; => value` or `; error: kind`, which belongs to its line or to
//! the line before. The document itself describes the inputs of the examples.

use std::collections::HashSet;

use backstitch_lisp::{
    Error, ErrorKind, Inputs, Limits, MachineOutcome, Request, Tools, Value, from_json, read_edn, to_edn,
};

use crate::support::engine;

const REFERENCE: &str = include_str!("../../../../docs/lisp.md");

/// The expected result of an example.
#[derive(Debug)]
enum Expected {
    Value(String),
    Error(String),
}

struct Example {
    line: usize,
    program: String,
    expected: Expected,
}

/// Returns all examples of the document.
fn examples() -> Vec<Example> {
    let mut examples = Vec::new();
    let mut program = String::new();
    let mut inside = false;
    for (at, line) in REFERENCE.lines().enumerate() {
        if line.starts_with("```") {
            assert!(program.is_empty(), "line {at}: an example without a value: {program}");
            inside = line == "```clojure";
            continue;
        }
        if !inside || line.trim().is_empty() || line.starts_with(";;") {
            continue;
        }
        let value = line.rfind("; => ").map(|from| (from, Expected::Value(line[from + 5..].to_owned())));
        let error = line.rfind("; error: ").map(|from| (from, Expected::Error(line[from + 9..].to_owned())));
        let Some((from, expected)) = value.or(error) else {
            program.push_str(line);
            program.push('\n');
            continue;
        };
        program.push_str(&line[..from]);
        examples.push(Example { line: at + 1, program: std::mem::take(&mut program), expected });
    }
    examples
}

/// Returns the first block of JSON in the document.
fn data() -> serde_json::Value {
    let (_, after) = REFERENCE.split_once("```json\n").expect("the data of the examples");
    let (text, _) = after.split_once("```").expect("the end of the data");
    serde_json::from_str(text).expect("the data are JSON")
}

fn inputs() -> Inputs {
    let limits = Limits::default();
    let Ok(Value::Map(data)) = from_json(&data(), &limits) else { panic!("the data are an object") };
    Inputs {
        data,
        tools: Tools::new().with("price", ["item", "currency"]).with("send_mail", ["to", "text"]),
        history: vec![Value::Integer(1), Value::Integer(2), Value::Integer(3)],
        now: 1_767_323_045_000,
        ..Inputs::default()
    }
}

/// Answers the two tools of the examples.
fn answer(request: &Request) -> Result<Value, String> {
    let Request::Tool(call) = request else { return Ok(Value::Nil) };
    let Value::Map(arguments) = &call.arguments else { panic!("arguments are a map") };
    match (&*call.name, arguments.get(&Value::string("item")).map(to_edn).as_deref()) {
        ("price", Some("\"tea\"")) => Ok(Value::Integer(3)),
        ("price", Some("\"milk\"")) => Ok(Value::Float(1.5)),
        ("price", Some(other)) => Err(format!("no shop sells {}", other.trim_matches('"'))),
        _ => Ok(call.arguments.clone()),
    }
}

fn run(source: &str) -> Result<Value, Error> {
    let inputs = inputs();
    let program = engine().compile(source, &inputs)?;
    let mut machine = engine().start(&program, inputs);
    loop {
        match machine.run() {
            MachineOutcome::Finished(finished) => return finished.result,
            MachineOutcome::Suspended(requests) => {
                for request in requests {
                    assert!(machine.resume(request.path(), answer(&request)), "{source}");
                }
            }
        }
    }
}

#[test]
fn each_example_gives_what_it_says() {
    let examples = examples();
    assert!(examples.len() > 300, "only {} examples were found", examples.len());
    let mut wrong = Vec::new();
    for Example { line, program, expected } in &examples {
        let result = run(program);
        let agrees = match (&result, expected) {
            (Ok(value), Expected::Value(expected)) => to_edn(value) == *expected,
            (Err(error), Expected::Error(expected)) => error.kind().name() == expected,
            _ => false,
        };
        if !agrees {
            let got = result.map_or_else(|error| error.render(), |value| to_edn(&value));
            wrong.push(format!("docs/lisp.md:{line}: {program}\n  says {expected:?}\n  gave {got}"));
        }
    }
    assert!(wrong.is_empty(), "{} examples are wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn values_of_examples_can_be_read_back() {
    for example in examples() {
        // Values without a notation, vars and orders of a comparator, are left out.
        if let Expected::Value(text) = &example.expected
            && !text.contains("#'")
            && !example.program.contains("sorted-map-by")
        {
            let value = read_edn(text, &Limits::default())
                .unwrap_or_else(|error| panic!("docs/lisp.md:{}: {text}\n{error}", example.line));
            assert_eq!(to_edn(&value), *text, "docs/lisp.md:{}", example.line);
        }
    }
}

/// Returns every word of the document that could be a name.
fn words() -> HashSet<&'static str> {
    let boundary = |character: char| character.is_whitespace() || "()[]{}`\",;|".contains(character);
    REFERENCE
        .split(boundary)
        .flat_map(|word| [word, word.trim_end_matches(':'), word.trim_end_matches('.')])
        .collect()
}

#[test]
fn every_name_of_the_library_is_described() {
    let words = words();
    let missing: Vec<&str> = engine().names().into_iter().filter(|name| !words.contains(name)).collect();
    assert!(missing.is_empty(), "docs/lisp.md lacks: {}", missing.join(" "));
}

#[test]
fn every_kind_of_error_is_described() {
    for kind in ErrorKind::ALL {
        assert!(REFERENCE.contains(&format!("| `{kind}` |")), "docs/lisp.md lacks {kind}");
    }
}

#[test]
fn every_limit_is_described() {
    let limits = format!("{:#?}", Limits::default());
    let names = limits.lines().filter_map(|line| line.trim().split_once(": ")).map(|(name, _)| name);
    for name in names {
        assert!(REFERENCE.contains(&format!("| `{name}` |")), "docs/lisp.md lacks {name}");
    }
}
