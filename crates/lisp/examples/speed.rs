//! Measures the speed targets of the design: a tiny program, and reduce, filter and map over rows.

use std::time::Duration;

use backstitch_lisp::{Engine, Inputs, Limits, MachineOutcome, Value, from_json};

/// Returns the CPU time of this thread, which other load on the machine does not change.
#[expect(clippy::disallowed_methods, reason = "a measurement")]
fn clock() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    Duration::from_nanos(text.split(' ').next().and_then(|first| first.parse().ok()).unwrap_or(0))
}

/// Measures a program, unless a filter is given that its label does not contain.
#[expect(clippy::disallowed_methods, reason = "a measurement")]
fn time(label: &str, rounds: u32, mut work: impl FnMut()) {
    if std::env::args().nth(1).is_some_and(|wanted| !label.contains(&wanted)) {
        return;
    }
    let mut best = Duration::MAX;
    for _ in 0..7 {
        let start = clock();
        for _ in 0..rounds {
            work();
        }
        best = best.min((clock() - start) / rounds);
    }
    report(label, best);
}

#[expect(clippy::disallowed_macros, clippy::print_stdout, reason = "a measurement")]
fn report(label: &str, best: Duration) {
    println!("{label}: {best:?}");
}

fn run(engine: &Engine, source: &str, inputs: &Inputs) -> Value {
    let program = engine.compile(source, inputs).expect("it compiles");
    match engine.start(&program, inputs.clone()).run() {
        MachineOutcome::Finished(finished) => finished.result.expect("it runs"),
        _ => Value::Nil,
    }
}

fn main() {
    let engine = Engine::new();
    let inputs = Inputs::default();
    time("tiny program", 20_000, || {
        run(&engine, "(let [x 1 y 2] (+ x y))", &inputs);
    });
    time("100k-step reduce with a closure", 40, || {
        run(&engine, "(reduce (fn [acc x] (+ acc (* x 2))) 0 (range 100000))", &inputs);
    });
    time("100k-step loop", 40, || {
        run(&engine, "(loop [i 0 acc 0] (if (< i 100000) (recur (inc i) (+ acc i)) acc))", &inputs);
    });
    let rows: Vec<serde_json::Value> = (0..10_000)
        .map(|i| serde_json::json!({"id": i, "price": i % 100, "name": "item", "active": i % 2 == 0}))
        .collect();
    let data = match from_json(&serde_json::json!({ "rows": rows }), &Limits::default()) {
        Ok(Value::Map(map)) => map,
        _ => return,
    };
    let inputs = Inputs { data, ..Inputs::default() };
    time("filter + map over 10k maps", 100, || {
        run(&engine, "(count (map :id (filter (fn [r] (> (:price r) 50)) data/rows)))", &inputs);
    });
    time("filter + map over 10k maps, closures", 100, || {
        run(
            &engine,
            "(reduce + (map (fn [r] (* 2 (:id r))) (filter (fn [r] (and (:active r) (> (:price r) 50))) data/rows)))",
            &inputs,
        );
    });
    time("group-by over 10k maps", 5, || {
        run(&engine, "(count (group-by :price data/rows))", &inputs);
    });
    time("assoc into a map, 100k", 2, || {
        run(&engine, "(count (reduce (fn [m i] (assoc m i (* i i))) {} (range 100000)))", &inputs);
    });
    time("sort-by over 10k maps", 5, || {
        run(&engine, "(first (sort-by :price data/rows))", &inputs);
    });
}
