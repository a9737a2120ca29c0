//! Tests of the system message: what it names exists, and what it shows runs.

use backstitch_core::tool::{ToolName, ToolSpec};
use backstitch_lisp::{Engine, Inputs, Limits, MachineOutcome, Tools, from_json};
use serde_json::json;

use super::*;
use crate::agent::LispAgent;

fn with_tool() -> LispAgent {
    let mut spec = ToolSpec::new(ToolName::new("find_files").unwrap(), "");
    spec.parameters = json!({
        "type": "object",
        "properties": {"pattern": {"type": "string"}, "limit": {"type": "integer"}},
        "required": ["pattern", "limit"],
    });
    LispAgent::new().with_tools([std::sync::Arc::new(spec)])
}

/// Words that are no names of the library: syntax, and placeholders of the text.
const SYNTAX: &[&str] = &[
    "#()",
    "& rest",
    "*1",
    "*2",
    "*3",
    "@",
    "data/name",
    "catch",
    "recur",
    "def",
    "defn",
    "fn",
    "let",
    "if",
    "when",
    "cond",
    "case",
    "condp",
    "and",
    "or",
    "do",
    "for",
    "doseq",
    "dotimes",
    "loop",
    "->",
    "->>",
    "as->",
    "some->",
    "cond->",
    "if-let",
    "when-let",
    "try",
    "throw",
    "delay",
    "with-out-str",
    "return",
];

/// Every word of the reference that stands in a list of names.
fn names() -> Vec<String> {
    let text = format!("{LANGUAGE}{DATES}");
    let mut names = Vec::new();
    for line in text.lines() {
        // The parts of a line begin with `Topic:` and end with a full stop.
        for part in line.trim_start_matches("- ").split(". ") {
            let Some((topic, list)) = part.split_once(": ") else { continue };
            if topic.contains(' ') {
                continue;
            }
            let code: Vec<&str> = list.split('`').collect();
            for (at, text) in code.iter().enumerate() {
                if at % 2 == 0 {
                    let words = text.split([' ', ',', ';']).map(|word| word.trim_end_matches('.'));
                    names.extend(words.filter(|word| !word.is_empty()).map(str::to_owned));
                }
            }
        }
    }
    names.retain(|name| !SYNTAX.contains(&name.as_str()));
    names.retain(|name| !["also", "destructuring"].contains(&name.as_str()));
    names
}

#[test]
fn every_name_in_it_exists() {
    let engine = Engine::new();
    let names = names();
    assert!(names.len() > 90, "{names:?}");
    for name in names {
        engine.compile(&name, &Inputs::default()).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    for form in SYNTAX.iter().filter(|form| LANGUAGE.contains(*form)) {
        assert!(!form.is_empty());
    }
}

fn inputs(agent: &LispAgent) -> Inputs {
    let data = from_json(&Json::Object(agent.data.clone()), &Limits::default()).unwrap();
    let backstitch_lisp::Value::Map(data) = data else { panic!("an object") };
    let tools = Tools::new().with("find_files", ["pattern", "limit"]);
    Inputs { data, tools, ..Inputs::default() }
}

/// Runs a program; each call returns nil.
fn run(source: &str, inputs: Inputs) -> Inputs {
    let engine = Engine::new();
    let program = engine.compile(source, &inputs).unwrap_or_else(|error| panic!("{source}: {error}"));
    let mut machine = engine.start(&program, inputs.clone());
    loop {
        match machine.run() {
            MachineOutcome::Finished(finished) => {
                finished.result.unwrap_or_else(|error| panic!("{source}: {error}"));
                return Inputs { memory: finished.memory, ..inputs };
            }
            MachineOutcome::Suspended(requests) => {
                for request in requests {
                    machine.resume(request.path(), Ok(backstitch_lisp::Value::Nil));
                }
            }
        }
    }
}

#[test]
fn every_example_in_it_runs() {
    let agents = [
        LispAgent::new(),
        with_tool(),
        with_tool().with_data("orders", json!([{"total": 1}])),
        LispAgent::new().with_data("_key", json!("secret")).with_data("year", json!(2026)),
        with_tool().with_signature("{count :int, names [:string]}".parse().unwrap()),
    ];
    for agent in agents {
        let text = agent.system();
        assert!(!text.contains("_key") && !text.contains("secret"));
        let mut inputs = inputs(&agent);
        let blocks: Vec<&str> = text.split("```clojure\n").skip(1).collect();
        assert_eq!(blocks.len(), 2, "{text}");
        for block in blocks {
            inputs = run(block.split("```").next().unwrap(), inputs);
        }
        // Calls of tools in the text are complete programs.
        for code in text.split('`').filter(|code| code.starts_with("(tool/find")) {
            run(code, inputs.clone());
        }
    }
    for source in ["(def row {:total 1}) [(:total row) (get row \"total\")]", "[(/ 1 3) (double 1/3)]"] {
        run(source, Inputs::default());
    }
}

#[test]
fn it_names_only_tools_that_there_are() {
    assert!(!LispAgent::new().system().replace("(tool/name ...)", "").contains("(tool/"));
    let offered = with_tool().system();
    let calls = offered.split("(tool/").skip(1).filter_map(|rest| rest.split([' ', ')']).next());
    assert!(calls.into_iter().all(|name| ["find_files", "name"].contains(&name)), "{offered}");
}

#[test]
fn it_is_short() {
    for agent in [LispAgent::new(), with_tool(), with_tool().with_data("orders", json!([1]))] {
        let characters = shared(&agent.prompt_parts()).chars().count();
        assert!(characters <= MOST_CHARACTERS, "{characters}");
    }
}

#[test]
fn a_single_program_has_no_second_turn() {
    let single = with_tool().with_max_turns(1).system();
    assert!(!single.contains("*1") && !single.contains("next one"), "{single}");
}
