//! The group `lisp`: the agent language, and the same programs in Clojure where it is installed.
//!
//! A program is read, compiled and run for each measurement where `whole` is true; elsewhere it is compiled once and only
//! run. The cost of a unit of fuel is in [`fuel`], which takes minutes and comes last.

mod clojure;
mod fuel;

use std::collections::BTreeMap;

use backstitch_lisp::{
    Engine, Inputs, Limits, MachineOutcome, Map, Program, ReadLimits, Value, from_json, read_all, to_edn,
};
use serde_json::json;

use crate::aims;
use crate::measure::{Effort, Timing, time};
use crate::report::Report;

/// For programs that take some microseconds: enough runs per sample to hide the resolution of the clock.
const TINY: Effort = Effort { samples: 101, per_sample: 256 };

/// A program that is measured, in this language and in Clojure.
pub(crate) struct Case {
    pub(crate) metric: &'static str,
    /// The program text. `data/rows` is the data; Clojure has the same data under the name `rows`.
    pub(crate) source: &'static str,
    /// The expected value in both languages, as EDN.
    pub(crate) value: &'static str,
    /// Whether reading and compiling are measured too.
    pub(crate) whole: bool,
    pub(crate) effort: Effort,
}

/// A program that is compiled once and takes milliseconds.
const fn compiled(metric: &'static str, source: &'static str, value: &'static str) -> Case {
    Case { metric, source, value, whole: false, effort: Effort::LARGE }
}

pub(crate) const CASES: &[Case] = &[
    Case { metric: "lisp.tiny", source: "(let [x 1 y 2] (+ x y))", value: "3", whole: true, effort: TINY },
    compiled("lisp.reduce", "(reduce (fn [acc x] (+ acc (* x 2))) 0 (range 100000))", "9999900000"),
    compiled("lisp.loop", "(loop [i 0 acc 0] (if (< i 100000) (recur (inc i) (+ acc i)) acc))", "4999950000"),
    compiled(
        "lisp.filter_map",
        "(count (map :id (filter (fn [row] (> (:price row) 50)) data/rows)))",
        "4900",
    ),
    compiled(
        "lisp.filter_map_reduce",
        "(reduce + (map (fn [row] (* 2 (:id row))) (filter (fn [row] (and (:active row) (> (:price row) 50))) data/rows)))",
        "24120000",
    ),
    compiled("lisp.group_by", "(count (group-by :price data/rows))", "100"),
    compiled("lisp.sort_by", "(:price (first (sort-by :price data/rows)))", "0"),
    compiled("lisp.frequencies", "(count (frequencies (map :price data/rows)))", "100"),
];

/// Number of rows of the data.
pub(crate) const ROWS: usize = 10_000;

/// Measures the group.
pub(crate) fn run(report: &mut Report) {
    let engine = Engine::new();
    let inputs = Inputs { data: rows(), ..Inputs::default() };
    let mut medians = BTreeMap::new();
    for case in CASES {
        let program = engine.compile(case.source, &inputs).expect("the program compiles");
        let value = to_edn(&finish(&engine, &program, &inputs));
        assert_eq!(value, case.value, "{}", case.source);
        let timing = if case.whole {
            time(case.effort, || {
                let program = engine.compile(case.source, &inputs).expect("the program compiles");
                finish(&engine, &program, &inputs)
            })
        } else {
            time(case.effort, || finish(&engine, &program, &inputs))
        };
        report.time(case.metric, json!({ "program": case.source, "whole": case.whole }), &timing);
        match case.metric {
            "lisp.tiny" => aims::TINY_PROGRAM.judge(report, json!({}), timing.cpu / 1e3),
            "lisp.filter_map" => aims::FILTER_MAP.judge(report, json!({ "maps": ROWS }), timing.cpu / 1e6),
            _ => {}
        }
        medians.insert(case.metric, timing.median);
    }
    let text = source_text();
    let limits = ReadLimits::default().with_bytes(4 << 20);
    let reading = time(Effort::LARGE, || read_all(&text, &limits).expect("the text can be read").len());
    speed(report, text.len(), &reading);
    report.time("lisp.engine", json!({}), &time(Effort::LARGE, Engine::new));
    clojure::run(report, &text, &medians);
    fuel::run(report, &engine);
}

fn finish(engine: &Engine, program: &Program, inputs: &Inputs) -> Value {
    match engine.start(program, inputs.clone()).run() {
        MachineOutcome::Finished(finished) => finished.result.expect("the program runs"),
        MachineOutcome::Suspended(_) => unreachable!("the program calls no tools"),
    }
}

/// The data of all programs.
fn rows() -> Map {
    let row =
        |id: usize| json!({"id": id, "price": id % 100, "name": "item", "active": id.is_multiple_of(2)});
    let rows: Vec<_> = (0..ROWS).map(row).collect();
    match from_json(&json!({ "rows": rows }), &Limits::default()) {
        Ok(Value::Map(data)) => data,
        _ => unreachable!("an object becomes a map"),
    }
}

/// About a megabyte of program text, as models write it.
fn source_text() -> String {
    let definition = "(defn total-of \"Sums up the paid orders.\" [orders rate]\n  (->> orders\n       (filter (fn [{:keys [paid? total]}] (and paid? (> total 12.5))))\n       (map #(* rate (:total %)))\n       (reduce + 0))) ; in cents\n(def settings {:limit 100, :names [\"Ada\" \"Bob\"], :pattern #\"[a-z]+\\\\d*\", :ids #{1 2 3}})\n";
    definition.repeat((1 << 20) / definition.len())
}

/// Prints the speed of the reader.
pub(crate) fn speed(report: &mut Report, bytes: usize, timing: &Timing) {
    let rate = |nanoseconds: f64| bytes as f64 * 1000.0 / nanoseconds;
    let params = json!({
        "bytes": bytes,
        "maximum": (rate(timing.minimum) * 10.0).round() / 10.0,
        "cpu": (rate(timing.cpu) * 10.0).round() / 10.0,
        "samples": timing.samples,
    });
    report.value("lisp.read", params, rate(timing.median), "MB/s");
}
