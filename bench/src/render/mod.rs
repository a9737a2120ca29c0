//! The group `render`: rendering of earlier turns for a model, by the default strategy.
//!
//! The aim is 200 us for 200 turns. A render reads only what it shows, so compare the rows for 20, 200 and
//! 2,000 turns: once the limits on calls, prints and definitions are reached, more turns cost nothing. Each
//! turn defines a value, makes a call and prints a line; some define a function. One turn in a hundred
//! failed, and with the default options failed turns stay in the request unchanged.

mod transcript;

use std::hint::black_box;
use std::sync::Arc;

use backstitch_core::tool::{ToolName, ToolSpec};
use backstitch_lisp::{Map, Truncation, Value};
use backstitch_repl::compression::{
    CoalescedOptions, Compression, Errors, History, RenderContext, SingleUserCoalesced, Trim,
};
use backstitch_repl::{
    DefinedAs, Excerpt, MemoryChange, Turn, TurnCall, TurnCallOutcome, TurnDefinition, TurnError,
};
use serde_json::json;

use crate::measure::{Effort, time};
use crate::report::Report;

const EFFORT: Effort = Effort { samples: 51, per_sample: 32 };
const TURNS: [usize; 3] = [20, 200, 2_000];

pub(crate) fn run(report: &mut Report) {
    let scene = scene();
    let recovered = CoalescedOptions { errors: Errors::UntilRecovered, ..CoalescedOptions::default() };
    let strategies: [(&str, Box<dyn Compression>); 3] = [
        ("single_user_coalesced", Box::new(SingleUserCoalesced::default())),
        ("single_user_coalesced, errors until recovered", Box::new(SingleUserCoalesced::new(recovered))),
        ("trim", Box::new(Trim::default())),
    ];
    for (name, strategy) in &strategies {
        for turns in TURNS {
            let history = history(turns);
            let rendered = strategy.render(&history, &scene);
            let timing = time(EFFORT, || strategy.render(black_box(&history), &scene));
            let params = json!({
                "strategy": name,
                "turns": turns,
                "bytes": rendered.statistics.bytes_after,
                "of_bytes": rendered.statistics.bytes_before,
            });
            report.time("render.request", params, &timing);
        }
    }
    for turns in TURNS {
        let (history, turn) = (history(turns), Arc::new(turn(turns)));
        let timing = time(EFFORT, || {
            let mut history = history.clone();
            history.push(turn.clone());
            history
        });
        report.time("render.push", json!({"turns": turns}), &timing);
    }
    let turns: Vec<Arc<Turn>> = (0..200).map(|number| Arc::new(turn(number))).collect();
    let timing = time(EFFORT, || turns.iter().cloned().collect::<History>());
    report.time("render.fold", json!({"turns": 200}), &timing);
    transcript::run(report);
}

fn scene() -> RenderContext {
    let tools: Vec<ToolSpec> = (0..5)
        .map(|number| {
            let name = ToolName::new(&format!("tool_{number}")).expect("invariant: a legal name");
            let mut spec = ToolSpec::new(name, "Finds what one looks for.");
            spec.parameters = json!({"type": "object", "properties": {"query": {"type": "string"}}});
            spec
        })
        .collect();
    let rows: Vec<Value> = (0..1_000).map(Value::Integer).collect();
    let data: Map = [(Value::keyword("rows"), Value::Vector(rows.into()))].into_iter().collect();
    RenderContext::new("Find the largest of them.")
        .system("You answer with programs.")
        .tools(&tools)
        .data(&data, Truncation::SAMPLE)
        .max_turns(Some(5_000))
}

fn history(turns: usize) -> History {
    (0..turns).map(|number| Arc::new(turn(number))).collect()
}

fn turn(number: usize) -> Turn {
    let success = number % 100 != 7;
    let program = format!(
        "(def found-{number} (tool/tool_1 {{:query \"item {number}\"}}))\n(println \"seen\" {number})"
    );
    let value =
        DefinedAs::Value { label: "list[3]".into(), sample: Some("[{:id 1} {:id 2} {:id 3}]".into()) };
    let function = DefinedAs::Function { parameters: vec!["[x]".into()], returned: Some("integer".into()) };
    let mut defined = vec![TurnDefinition { name: format!("found-{number}"), doc: None, defined_as: value }];
    if number.is_multiple_of(3) {
        let doc = Some("What it is; and why.".to_owned());
        defined.push(TurnDefinition { name: format!("helper-{number}"), doc, defined_as: function });
    }
    let id = format!("01900000-0000-7000-8000-{number:012x}");
    Turn {
        number: number as u64 + 1,
        answer: format!("```clojure\n{program}\n```"),
        program: Some(program),
        success,
        error: (!success).then(|| TurnError { kind: "type_error".into(), message: "no number".into() }),
        prints: if number.is_multiple_of(2) { vec![format!("seen {number}")] } else { Vec::new() },
        tool_calls: vec![TurnCall {
            call_id: id.parse().expect("invariant: an id"),
            path: Some("0".into()),
            name: "tool_1".into(),
            arguments: Excerpt::Whole(json!({"query": format!("item {number}"), "limit": 10})),
            outcome: TurnCallOutcome::Result(Excerpt::Whole(
                json!([{"id": 1, "title": "A"}, {"id": 2, "title": "B"}]),
            )),
        }],
        memory: if success {
            MemoryChange { defined, ..MemoryChange::default() }
        } else {
            MemoryChange::default()
        },
        ..Turn::default()
    }
}
