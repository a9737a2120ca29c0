//! The record of a turn: plain JSON, whose size depends on what the turn did.

use backstitch_lisp::{Engine, Inputs, MachineOutcome, Memory, Truncation, Value};
use backstitch_repl::{
    DefinedAs, Excerpt, MemoryChange, Turn, TurnCall, TurnCallOutcome, TurnDefinition, TurnError, TurnSignal,
};
use serde_json::json;

fn defined(source: &str) -> Vec<TurnDefinition> {
    let (engine, inputs) = (Engine::new(), Inputs::default());
    let program = engine.compile(source, &inputs).unwrap();
    let MachineOutcome::Finished(finished) = engine.start(&program, inputs).run() else {
        panic!("{source} waits")
    };
    finished.result.unwrap();
    MemoryChange::between(&Memory::new(), &finished.memory, &[], Truncation::SAMPLE).defined
}

#[test]
fn a_turn_is_plain_json_and_comes_back() {
    let turn = Turn {
        number: 2,
        answer: "```clojure\n(def x 1)\n```".into(),
        program: Some("(def x 1)".into()),
        success: true,
        result: Some(Excerpt::Whole(json!("#'x"))),
        signal: Some(TurnSignal::Return),
        error: Some(TurnError { kind: "type_error".into(), message: "no".into() }),
        prints: vec!["one\ntwo".into()],
        tool_calls: vec![TurnCall {
            call_id: "01900000-0000-7000-8000-000000000007".parse().unwrap(),
            path: Some("0".into()),
            name: "search".into(),
            arguments: Excerpt::Whole(json!({"query": "a"})),
            outcome: TurnCallOutcome::Error("down".into()),
        }],
        memory: MemoryChange { defined: defined("(def x 1)"), ..MemoryChange::default() },
        ..Turn::default()
    };
    let json = serde_json::to_value(&turn).unwrap();
    assert_eq!(
        json,
        json!({
            "number": 2,
            "answer": "```clojure\n(def x 1)\n```",
            "program": "(def x 1)",
            "success": true,
            "result": {"whole": "#'x"},
            "signal": "return",
            "error": {"kind": "type_error", "message": "no"},
            "prints": ["one\ntwo"],
            "tool_calls": [{
                "call_id": "01900000-0000-7000-8000-000000000007",
                "path": "0",
                "name": "search",
                "arguments": {"whole": {"query": "a"}},
                "outcome": {"error": "down"},
            }],
            "memory": {"defined": [{"name": "x", "value": {"label": "integer", "sample": "1"}}]},
        })
    );
    assert_eq!(serde_json::from_value::<Turn>(json.clone()).unwrap(), turn);

    let mut newer = json;
    newer["of_a_newer_version"] = json!([1]);
    let read: Turn = serde_json::from_value(newer.clone()).unwrap();
    assert_eq!(serde_json::to_value(read).unwrap(), newer);
}

#[test]
fn a_turn_that_did_nothing_says_nothing() {
    let turn = Turn { number: 1, answer: "Hello.".into(), ..Turn::default() };
    assert_eq!(
        serde_json::to_value(&turn).unwrap(),
        json!({"number": 1, "answer": "Hello.", "success": false})
    );
}

#[test]
fn definitions_are_kept_as_they_are_shown() {
    let all = defined(
        "(def none nil) (def empty-list []) (def rows [1 2 3 4])
         (defn f \"Doc\" ([x] x) ([x & more] x)) (f 1) (def seen (atom 5))",
    );
    let shown: Vec<_> =
        all.iter().map(|one| (one.name.as_str(), one.doc.as_deref(), &one.defined_as)).collect();
    let value = |label: &str, sample: Option<&str>| DefinedAs::Value {
        label: label.into(),
        sample: sample.map(str::to_owned),
    };
    let function = DefinedAs::Function {
        parameters: vec!["[x]".into(), "[x & more]".into()],
        returned: Some("integer".into()),
    };
    assert_eq!(
        shown,
        [
            ("none", None, &value("nil", None)),
            ("empty-list", None, &value("list[0]", None)),
            ("rows", None, &value("list[4]", Some("[1 2 3 ...] (4 items, showing first 3)"))),
            ("f", Some("Doc"), &function),
            ("seen", None, &value("atom", None)),
        ]
    );
}

#[test]
fn what_is_large_is_kept_as_a_sample() {
    let items: Vec<i64> = (0..10_000).collect();
    let value = Value::Vector(items.iter().copied().map(Value::Integer).collect::<Vec<_>>().into());
    let large = Excerpt::of(&json!(items), &value, Truncation::SAMPLE);
    let expected = "[0 1 2 ...] (10000 items, showing first 3)";
    assert_eq!(large, Excerpt::Sample { text: expected.into(), label: "list[10000]".into() });
    let small = Excerpt::of(&json!([1]), &value, Truncation::SAMPLE);
    assert_eq!(small, Excerpt::Whole(json!([1])));
}
