//! The time that a unit of fuel takes, and the longest time between two checks whether a program is to stop.
//!
//! Fuel bounds time only if no function does much more work per unit than the others. So every function of
//! the library is called repeatedly with the largest permitted values, and the slowest are printed. The aims
//! are 250 ns per unit for each of them, and 100 ms between two checks.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use backstitch_lisp::fuzzing::exhaust::{calls_of, for_ever, functions, largest_values};
use backstitch_lisp::{Engine, Inputs, Limits, MachineOutcome};
use serde_json::json;

use crate::report::Report;

/// The fuel of each program.
const FUEL: u64 = 200_000;
/// Items of the collections that functions are called with.
const ITEMS: usize = 100_000;
/// How many of the slowest calls are measured again in a loop.
const TRIED_AGAIN: usize = 50;
/// How many of the slowest calls are printed.
const SLOWEST: usize = 10;

/// A metric, what it is of a program, and its unit.
type Figure = (&'static str, fn(&Cost) -> f64, &'static str);

/// The figures of the slowest calls.
const FIGURES: [Figure; 2] = [
    ("lisp.fuel_slowest", |cost| cost.nanoseconds_per_unit, "ns/unit"),
    ("lisp.look_longest", |cost| cost.longest, "ms"),
];

/// The measured cost of a program.
struct Cost {
    call: String,
    nanoseconds_per_unit: f64,
    /// The longest time between two checks, in milliseconds.
    longest: f64,
}

pub(super) fn run(report: &mut Report, engine: &Engine) {
    let inputs = |fuel: u64| {
        let mut limits = Limits::default();
        limits.fuel = fuel;
        Inputs { limits, ..Inputs::default() }
    };
    let program = "(loop [i 0] (recur (inc i)))";
    let plain = cost(program, "", engine, &inputs(10_000_000)).expect("it compiles");
    let params = json!({ "program": program });
    report.value("lisp.fuel", params.clone(), plain.nanoseconds_per_unit, "ns/unit");
    report.value("lisp.look", params, plain.longest, "ms");

    let largest = Inputs { data: largest_values(&Limits::default(), ITEMS), ..inputs(FUEL) };
    // Each call is tried once with smaller values. Those that took the most time per unit, or the longest
    // time, then run in a loop with the largest values.
    let mut smaller = Limits::default();
    (smaller.string_bytes, smaller.number_bits) = (128 << 10, 20_000);
    let once = Inputs { data: largest_values(&smaller, ITEMS / 20), ..inputs(FUEL) };
    let mut tried = Vec::new();
    for function in functions(engine) {
        for call in calls_of(engine, &function) {
            tried.extend(cost(&call, &call, engine, &once));
        }
    }
    let mut again = BTreeSet::new();
    for (_, figure, _) in FIGURES {
        sort(&mut tried, figure);
        again.extend(tried.iter().take(TRIED_AGAIN).map(|cost| cost.call.clone()));
    }
    let again = again.iter().filter_map(|call| cost(&for_ever(call), call, engine, &largest));
    let mut costs: Vec<Cost> = again.collect();
    for (metric, figure, unit) in FIGURES {
        sort(&mut costs, figure);
        for cost in costs.iter().take(SLOWEST) {
            let params = json!({ "call": cost.call, "calls": tried.len() });
            report.value(metric, params, figure(cost), unit);
        }
    }
}

/// Sorts programs by a figure, the largest first.
fn sort(costs: &mut [Cost], figure: fn(&Cost) -> f64) {
    costs.sort_by(|one, other| figure(other).total_cmp(&figure(one)));
}

/// Runs a program until its fuel is used up.
fn cost(source: &str, call: &str, engine: &Engine, inputs: &Inputs) -> Option<Cost> {
    let program = engine.compile(source, inputs).ok()?;
    let mut machine = engine.start(&program, inputs.clone());
    let longest = Arc::new(AtomicU64::new(0));
    let last = Arc::new(AtomicU64::new(0));
    let started = Instant::now();
    let (kept, seen) = (longest.clone(), last.clone());
    let now = move || u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX);
    machine.stop_when(move || {
        let at = now();
        kept.fetch_max(at - seen.swap(at, Ordering::Relaxed), Ordering::Relaxed);
        false
    });
    let MachineOutcome::Finished(finished) = machine.run() else { return None };
    let elapsed = started.elapsed().as_nanos() as f64;
    let after = elapsed as u64 - last.load(Ordering::Relaxed).min(elapsed as u64);
    let longest = longest.load(Ordering::Relaxed).max(after);
    // A program that ends early has used little fuel, and the cost of its start and end would dominate.
    let units = finished.fuel_used.max(1000) as f64;
    Some(Cost { call: call.to_owned(), nanoseconds_per_unit: elapsed / units, longest: longest as f64 / 1e6 })
}
