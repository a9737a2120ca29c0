//! Fuel is proportional to work: a unit of fuel pays for a bounded number of elementary operations in every
//! function.
//!
//! A feature that only tests enable counts the operations: bytes, items and words of numbers that primitives
//! touch. The allocator counts allocations in addition.

#[cfg(feature = "tally")]
use backstitch_lisp::take_tally;
use backstitch_lisp::{Inputs, Limits, MachineOutcome};

#[cfg(feature = "tally")]
use backstitch_lisp::fuzzing::exhaust::{calls_of, for_ever, functions, largest_values};

#[cfg(feature = "tally")]
use crate::allocations::all_allocated;
use crate::support::engine;

/// Elementary operations per unit of fuel.
#[cfg(feature = "tally")]
const OPERATIONS: u64 = 64;
/// Operations of the last primitive of a program before it notices that the fuel is used.
#[cfg(feature = "tally")]
const LAST: u64 = 2 * 64 * 10_000;
/// Bytes per unit of fuel.
#[cfg(feature = "tally")]
const BYTES: u64 = 16 << 10;

fn limits(fuel: u64) -> Limits {
    let mut limits = Limits::default();
    limits.fuel = fuel;
    limits
}

/// Runs a program. Returns its outcome, its fuel, its operations, and the bytes it allocated.
#[cfg(feature = "tally")]
fn did(source: &str, inputs: &Inputs) -> Option<(&'static str, u64, u64, u64)> {
    let program = engine().compile(source, inputs).ok()?;
    let mut machine = engine().start(&program, inputs.clone());
    take_tally();
    let (bytes, outcome) = all_allocated(|| machine.run());
    let MachineOutcome::Finished(finished) = outcome else { panic!("{source} waits") };
    let kind = finished.result.as_ref().err().map_or("done", |error| error.kind().name());
    Some((kind, finished.fuel_used, take_tally(), bytes as u64))
}

/// Calls each library function with the largest values, and in an endless loop the call that does the most
/// work for its fuel. The functions are divided into `parts` parts; one of them is tested.
#[cfg(feature = "tally")]
fn each_ends_by_its_fuel(part: usize, parts: usize) {
    let mut wrong = Vec::new();
    for (string_bytes, items, number_bits) in [(4 << 10, 256, 2_000), (64 << 10, 8_000, 20_000)] {
        let mut limits = limits(100_000);
        (limits.string_bytes, limits.collection_size, limits.number_bits) =
            (string_bytes, 2 * items, number_bits);
        let inputs = Inputs { data: largest_values(&limits, items), limits, ..Inputs::default() };
        for function in functions(engine()).into_iter().skip(part).step_by(parts) {
            let mut worst = Vec::new();
            for call in calls_of(engine(), &function) {
                // Errors are charged too, but are not worth repeating.
                let Some((kind, fuel, operations, bytes)) = did(&call, &inputs) else { continue };
                let last = if kind == "fuel_exceeded" { LAST } else { OPERATIONS };
                if operations > (fuel + 1) * OPERATIONS + last || bytes > fuel * BYTES + (4 << 20) {
                    wrong
                        .push(format!("{kind}, {fuel} fuel, {operations} operations, {bytes} bytes: {call}"));
                }
                if kind == "done" || kind.ends_with("_exceeded") {
                    worst.push(((operations + bytes) / fuel.max(1), call));
                }
            }
            worst.sort_unstable();
            for (_, call) in worst.iter().rev().take(2) {
                let (kind, fuel, operations, bytes) = did(&for_ever(call), &inputs).expect("it compiles");
                let is_bounded =
                    operations <= (fuel + 1) * OPERATIONS + LAST && bytes <= fuel * BYTES + (4 << 20);
                if !kind.ends_with("_exceeded") || !is_bounded {
                    wrong.push(format!(
                        "{kind}, {fuel} fuel, {operations} operations, {bytes} bytes, for ever: {call}"
                    ));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} went wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[cfg(feature = "tally")]
macro_rules! parts {
    ($($name:ident $part:literal)*) => {$(
        #[test]
        fn $name() {
            each_ends_by_its_fuel($part, 4);
        }
    )*};
}

#[cfg(feature = "tally")]
parts! {
    every_function_ends_by_its_fuel_one 0
    every_function_ends_by_its_fuel_two 1
    every_function_ends_by_its_fuel_three 2
    every_function_ends_by_its_fuel_four 3
}

/// Programs whose primitives once took far longer than their fuel paid for. Each ends with one of its limits.
#[test]
fn work_that_was_too_cheap_is_charged() {
    for source in [
        "(def s (apply str (repeat 40000 \"ü\"))) (def t (clojure.string/join (repeat 20 s))) (loop [] (nth t 790000) (get t 790000) (recur))",
        "(def s (apply str (repeat 40000 \"ab\"))) (def a (clojure.string/join (repeat 20 s))) (def b (str a \"c\")) (loop [] (compare a b) (recur))",
        "(loop [n 1] (recur (*' n 3)))",
        "(def n (reduce *' (repeat 20000 5N))) (loop [] (str n) (recur))",
        "(def a (reduce *' (repeat 15000 3N))) (def b (reduce *' (repeat 20000 5N))) (loop [] (/ a b) (recur))",
        "(def a (/ (reduce *' (repeat 15000 3N)) (reduce *' (repeat 20000 5N)))) (loop [] (double a) (< a a) (recur))",
        "(def v (vec (range 100000))) (loop [] (conj v 1) (recur))",
        "(def m (zipmap (range 10000) (range))) (loop [] (seq m) (rest m) (recur))",
        "(loop [] (re-pattern \"(\\\\w{1,20}){1,10}\") (recur))",
    ] {
        let inputs = Inputs { limits: limits(3_000_000), ..Inputs::default() };
        let program = engine().compile(source, &inputs).expect(source);
        let MachineOutcome::Finished(finished) = engine().start(&program, inputs).run() else {
            panic!("{source} waits")
        };
        let kind = finished.result.err().map_or("done", |error| error.kind().name());
        assert!(kind.ends_with("_exceeded"), "{kind}: {source}");
    }
}

/// Sums of fractions stay cheap if the terms are small.
#[test]
fn a_sum_of_many_fractions_is_affordable() {
    crate::support::gives(
        "(let [h (reduce + (map (fn [k] (/ 1 k)) (range 1 3000)))] [(ratio? h) (< 8.5 h 8.6)])",
        "[true true]",
    );
}

#[test]
fn a_program_is_stopped_when_its_host_says_so_and_asks_often() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    for source in [
        "(loop [] (recur))",
        "(loop [] (try (throw (ex-info \"\" {})) (catch Throwable e nil)) (recur))",
        "(reduce + (range))",
    ] {
        let inputs = Inputs { limits: limits(1_000_000_000), ..Inputs::default() };
        let program = engine().compile(source, &inputs).expect(source);
        let mut machine = engine().start(&program, inputs);
        let looks = Arc::new(AtomicU64::new(0));
        let counted = looks.clone();
        machine.stop_when(move || counted.fetch_add(1, Ordering::Relaxed) >= 99);
        let MachineOutcome::Finished(finished) = machine.run() else { panic!("{source} waits") };
        assert_eq!(finished.result.map_err(|error| error.kind().name()), Err("stopped"), "{source}");
        assert_eq!(looks.load(Ordering::Relaxed), 100, "{source}");
        assert!(finished.fuel_used <= 99 * 10_000, "{} in {source}", finished.fuel_used);
    }
}

/// A stop request interrupts a single call that would not end.
#[test]
fn a_long_call_is_stopped_too() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    let towers =
        "(let [tower (fn [] (reduce (fn [v _] [v v]) [0] (range 60)))] (def a (tower)) (def b (tower)))";
    for call in [
        "(= a b)",
        "(compare a b)",
        "(hash a)",
        "(flatten a)",
        "(contains? #{a} b)",
        "(get {a 1} b)",
        "(distinct? a b)",
        "(sort [a b])",
        "(count (pr-str a))",
        "(count (json/write-str a))",
    ] {
        let mut limits = limits(u64::MAX);
        (limits.memory_bytes, limits.collection_size, limits.string_bytes) = (1 << 50, 1 << 60, 1 << 60);
        let inputs = Inputs { limits, ..Inputs::default() };
        let source = format!("{towers} {call}");
        let program = engine().compile(&source, &inputs).expect(call);
        let mut machine = engine().start(&program, inputs);
        let looks = Arc::new(AtomicU64::new(0));
        let counted = looks.clone();
        machine.stop_when(move || counted.fetch_add(1, Ordering::Relaxed) >= 9);
        let MachineOutcome::Finished(finished) = machine.run() else { panic!("{call} waits") };
        let ended = finished.result.map_err(|error| error.kind().name());
        assert!(ended == Err("stopped"), "{call}: {ended:?}");
        assert!(finished.memory.is_empty(), "{call} leaves something");
    }
}

/// Texts of a megabyte whose compilation once took quadratic time.
#[test]
fn compiling_takes_time_that_grows_with_the_text() {
    let many = |count: usize, one: &dyn Fn(usize) -> String| (0..count).map(one).collect::<String>();
    let sources = [
        format!("(case 0 {})", many(50_000, &|at| format!("{at} :v{at} "))),
        format!(
            "(let [{}] {})",
            many(30_000, &|at| format!("a{at} {at} ")),
            many(60_000, &|_| "(+) ".to_owned())
        ),
        format!(
            "(fn [] (let [{}] (fn [] [{}])))",
            many(20_000, &|at| format!("a{at} 1 ")),
            many(20_000, &|at| format!("a{at} "))
        ),
        format!(
            "(fn [{{:keys [{}] :or {{{}}}}}] 1)",
            many(20_000, &|at| format!("a{at} ")),
            many(20_000, &|at| format!("a{at} 1 "))
        ),
        format!(
            "(letfn [{}] {})",
            many(10_000, &|at| format!("(f{at} [] (f{})) ", 9_999 - at)),
            many(10_000, &|_| "(f0) ".to_owned())
        ),
        format!("(cond {})", many(40_000, &|at| format!("(= 1 {at}) {at} "))),
        format!("(-> 1 {})", many(50_000, &|_| "inc ".to_owned())),
        format!("{{{}}}", many(50_000, &|at| format!(":k{at} {at} "))),
        format!("#{{{}}}", many(50_000, &|at| format!("{at} "))),
        many(20_000, &|at| format!("(def d{at} {at}) ")),
        format!("(or {})", many(100_000, &|_| "nil ".to_owned())),
        format!("(str {})", many(60_000, &|_| "\"x\" ".to_owned())),
        format!("(condp = 1 {})", many(150, &|at| format!("{at} {at} "))),
        format!("(do {})", many(30_000, &|at| format!("(if true {at} nil) "))),
    ];
    for source in sources {
        let inputs = Inputs { limits: limits(3_000_000), ..Inputs::default() };
        let shown: String = source.chars().take(60).collect();
        match engine().compile(&source, &inputs) {
            Ok(_) => {}
            // Exceeding a limit is refused, and soon.
            Err(error) => assert!(
                matches!(
                    error.kind().name(),
                    "invalid_form" | "nesting_exceeded" | "size_exceeded" | "stack_exceeded"
                ),
                "{shown}: {error}"
            ),
        }
    }
}
