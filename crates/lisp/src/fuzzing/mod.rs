//! Functions for fuzzers. They take bytes and panic if an invariant is broken.
//!
//! The tests of this crate run each on mutations of real programs; the targets in `fuzz/` run them without an
//! end. They are not a stable interface.

pub mod exhaust;

use std::sync::OnceLock;

use serde_json::json;

use crate::edn::form_to_value;
use crate::{
    Engine, Inputs, Limits, MachineOutcome, Map, ProgramResult, ReadLimits, Request, Tools, Value,
    completeness, from_json, read_all, read_edn, repair, restore_memory, store_memory, to_clojure, to_edn,
    to_edn_within, type_label,
};

/// Reads text as a program. A form that was read lies within the text, prints, and reads back equal; an error
/// has a location. Returns whether the text was read.
pub fn reader(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let limits = ReadLimits::default().with_depth(60).with_bytes(64 << 10);
    let mut was_read = false;
    for text in [&*text, &*repair(&text)] {
        let forms = match read_all(text, &limits) {
            Ok(forms) => forms,
            Err(error) => {
                assert!(error.line().is_some(), "an error of the reader has a place: {error}");
                let _ = (error.render(), completeness(text, &limits));
                continue;
            }
        };
        was_read = true;
        for form in &forms {
            assert!(form.span.text(text).is_some(), "a form lies within the text");
            // A literal may be an invalid regular expression, date or number.
            let Ok(value) = form_to_value(form) else { continue };
            let printed = to_edn(&value);
            let again = read_edn(&printed, &Limits::default())
                .unwrap_or_else(|error| panic!("printed text can be read: {printed}\n{error}"));
            assert_eq!(again, value, "and is the same: {printed}");
            assert_eq!(to_edn(&again), printed, "printing is stable");
            let _ = (to_clojure(&value, 3, 80), type_label(&value));
        }
    }
    was_read
}

/// The memory limit of programs of [`evaluator`].
pub const EVALUATOR_MEMORY: usize = 1 << 20;

/// Runs text as a program under small limits. It ends, its two runs are equal whatever the order of tool
/// answers, and its memory can be printed and stored. Returns whether it had a value.
pub fn evaluator(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let first = run(&text, false);
    let second = run(&text, true);
    let (first, second) = match (first, second) {
        (Some(first), Some(second)) => (first, second),
        (None, None) => return false,
        _ => panic!("a program compiles twice or never"),
    };
    let exhausted = |finished: &ProgramResult| {
        finished.result.as_ref().is_err_and(|error| error.kind().name().ends_with("_exceeded"))
    };
    let text_of = |value: &Value| to_edn_within(value, 1 << 20).unwrap_or_else(|_| "long".to_owned());
    // Which branch of a `pmap` reaches a limit depends on the order of answers; that one does is
    // deterministic. And of branches that share a task, the first one runs it.
    if !exhausted(&first) && !exhausted(&second) && !text.contains("task") {
        let result = |finished: &ProgramResult| match &finished.result {
            Ok(value) => text_of(value),
            Err(error) => error.render(),
        };
        assert_eq!(result(&first), result(&second), "the same program gives the same value");
        assert_eq!(first.prints, second.prints, "and the same prints");
        assert_eq!(first.fuel_used, second.fuel_used, "for the same fuel");
    }
    for finished in [&first, &second] {
        if let Ok(value) = &finished.result {
            let _ = (text_of(value), to_clojure(value, 3, 80), type_label(value));
            let _ = crate::to_json(value, None);
        }
        if let Ok(stored) = store_memory(&finished.memory, &Limits::default()) {
            let restored = restore_memory(&stored, engine(), &Inputs::default())
                .unwrap_or_else(|error| panic!("a stored document can be restored: {stored}\n{error}"));
            let again = store_memory(&restored, &Limits::default()).expect("and stored again");
            assert_eq!(again, stored, "as the same document");
        }
    }
    first.result.is_ok()
}

fn engine() -> &'static Engine {
    static ENGINE: OnceLock<Engine> = OnceLock::new();
    ENGINE.get_or_init(Engine::new)
}

fn limits() -> Limits {
    Limits {
        fuel: 30_000,
        memory_bytes: EVALUATOR_MEMORY,
        stack_depth: 300,
        collection_size: 5_000,
        string_bytes: 50_000,
        number_bits: 5_000,
        tool_calls: 20,
        parallelism: 3,
        ..Limits::default()
    }
}

/// Runs a program. Answers the newest or the oldest request first.
fn run(source: &str, newest_first: bool) -> Option<ProgramResult> {
    let rows = json!({"rows": [{"id": 1, "price": 2.5, "name": "tea"}, {"id": 2, "price": 3, "name": null}], "n": 7});
    let data = match from_json(&rows, &Limits::default()) {
        Ok(Value::Map(data)) => data,
        _ => Map::new(),
    };
    let tools = Tools::new().with("echo", ["value"]).with("fails", ["why"]);
    let inputs =
        Inputs { data, tools, limits: limits(), history: vec![Value::Integer(1)], ..Inputs::default() };
    let program = match engine().compile(source, &inputs) {
        Ok(program) => program,
        Err(error) => {
            let _ = error.render();
            return None;
        }
    };
    let mut machine = engine().start(&program, inputs);
    loop {
        let requests = match machine.run() {
            MachineOutcome::Finished(finished) => return Some(*finished),
            MachineOutcome::Suspended(requests) => requests,
        };
        let request = if newest_first { requests.last() } else { requests.first() };
        let request = request.expect("a program that waits waits for something");
        let answer = match request {
            Request::Tool(call) if &*call.name == "echo" => Ok(call.arguments.clone()),
            Request::Tool(_) => Err("it broke".to_owned()),
            Request::Record(_) => Ok(Value::Nil),
        };
        assert!(machine.resume(request.path(), answer), "every request accepts an answer");
    }
}
