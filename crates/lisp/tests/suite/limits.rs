//! The limits of a program, and programs that try to exceed them.

use backstitch_lisp::{Inputs, Limits, MachineOutcome, Memory};

use crate::support::engine;

fn kind(source: &str, limits: Limits) -> String {
    let inputs = Inputs { limits, ..Inputs::default() };
    let program = match engine().compile(source, &inputs) {
        Ok(program) => program,
        Err(error) => return error.kind().name().to_owned(),
    };
    match engine().start(&program, inputs).run() {
        MachineOutcome::Finished(finished) => match finished.result {
            Ok(_) => "done".to_owned(),
            Err(error) => error.kind().name().to_owned(),
        },
        _ => "waits".to_owned(),
    }
}

#[track_caller]
fn ends(source: &str, expected: &str) {
    assert_eq!(kind(source, Limits::default()), expected, "{source}");
}

#[track_caller]
fn ends_one_of(source: &str, expected: &[&str]) {
    let kind = kind(source, Limits::default());
    assert!(expected.contains(&kind.as_str()), "{source} ends with {kind}");
}

#[test]
fn endless_programs_run_out_of_fuel() {
    ends("(loop [] (recur))", "fuel_exceeded");
    ends("(while true nil)", "fuel_exceeded");
    ends("(reduce + (range))", "fuel_exceeded");
    ends("(last (filter neg? (range)))", "fuel_exceeded");
    ends("(try (loop [] (recur)) (catch Throwable e 1))", "fuel_exceeded");
    ends("(loop [] (try (recur-not) (catch Exception e 1)))", "unbound_var");
    ends("(first (filter neg? (iterate inc 0)))", "fuel_exceeded");
    // Vars that refer to each other.
    ends("(def v nil) (def v #'v) (v 1)", "fuel_exceeded");
    ends("(def a nil) (def b #'a) (def a #'b) (map a [1])", "fuel_exceeded");
}

#[test]
fn deep_recursion_is_an_error() {
    ends("(defn f [n] (+ 1 (f (inc n)))) (f 0)", "stack_exceeded");
    ends("((fn f [] (f)))", "stack_exceeded");
    ends("(letfn [(a [] (inc (b))) (b [] (inc (a)))] (a))", "stack_exceeded");
    ends("(defn f [n] (reduce (fn [a _] (f a)) n [1 2])) (f 0)", "stack_exceeded");
    ends("(try ((fn f [] (inc (f)))) (catch StackOverflowError e 1))", "done");
    ends("(defn f [n] (if (zero? n) 0 (inc (f (dec n))))) (f 5000)", "done");
    // A tower of lazy sequences, each of which reads the one below.
    ends("(first (reduce (fn [s _] (map inc s)) [1] (range 200000)))", "stack_exceeded");
}

#[test]
fn values_cannot_nest_without_end() {
    ends("(reduce (fn [v _] [v]) [] (range 1000000))", "nesting_exceeded");
    ends("(reduce (fn [m _] {:a m}) {} (range 1000000))", "nesting_exceeded");
    ends("(reduce (fn [m _] (list m)) () (range 1000000))", "nesting_exceeded");
    ends("(reduce (fn [f _] (fn [x] (f x))) inc (range 1000000))", "nesting_exceeded");
    ends("(reduce (fn [f _] (comp f inc)) inc (range 1000000))", "nesting_exceeded");
    ends("(reduce (fn [e _] (ex-info \"x\" {} e)) nil (range 1000000))", "nesting_exceeded");
    ends("(reduce (fn [s _] (lazy-seq [s])) nil (range 100000))", "nesting_exceeded");
    ends("(assoc-in {} (range 100000) 1)", "nesting_exceeded");
    ends("(nth (iterate (fn [x] (reduced x)) 1) 100000)", "nesting_exceeded");
    // Code that only seems to nest is fine.
    ends(
        "(loop [s {:n 0} i 0] (if (< i 10000) (recur {:n i :before (dissoc s :before)} (inc i)) s))",
        "done",
    );
    ends(
        "(loop [s {:n 0} i 0] (if (< i 10000) (recur {:n i :before (assoc s :before nil)} (inc i)) s))",
        "done",
    );
}

#[test]
fn sizes_are_bounded() {
    ends("(vec (range 10000000))", "size_exceeded");
    ends("(doall (repeat 10000000 1))", "size_exceeded");
    ends("(loop [s \"ab\"] (recur (str s s)))", "size_exceeded");
    ends("(loop [n 2] (recur (*' n n)))", "number_size_exceeded");
    ends_one_of("(reduce *' (repeat 1000000 2))", &["number_size_exceeded", "fuel_exceeded"]);
    ends("(loop [v [1]] (recur (into v v)))", "size_exceeded");
    ends_one_of("(loop [v [1]] (recur (vec (concat v v))))", &["size_exceeded", "memory_exceeded"]);
    ends("(apply str (repeat 1000000 \"0123456789\"))", "size_exceeded");
}

#[test]
fn what_is_shared_cannot_unfold() {
    // Sixty levels of pairs are sixty cells and 2^60 leaves.
    let tower = "(reduce (fn [x _] [x x]) 1 (range 60))";
    ends(tower, "done");
    ends_one_of(&format!("(= {tower} {tower})"), &["fuel_exceeded"]);
    ends_one_of(&format!("(str {tower})"), &["fuel_exceeded", "size_exceeded"]);
    ends_one_of(&format!("(println {tower})"), &["fuel_exceeded", "size_exceeded"]);
    ends_one_of(&format!("(count (flatten {tower}))"), &["fuel_exceeded", "size_exceeded"]);
    ends_one_of(&format!("(hash {tower})"), &["fuel_exceeded", "size_exceeded"]);
    // The search for an atom visits each shared part once.
    ends("(def t (reduce (fn [x _] [x x]) (atom 1) (range 60)))", "done");
    ends_one_of(
        &format!("#{{{tower} (vec {tower})}}"),
        &["fuel_exceeded", "size_exceeded", "invalid_argument"],
    );
    ends_one_of(
        "(reduce (fn [x _] (map identity [x x])) [1] (range 60))",
        &["fuel_exceeded", "size_exceeded", "memory_exceeded", "nesting_exceeded"],
    );
}

#[test]
fn memory_is_bounded() {
    let small = || {
        let mut limits = Limits::default();
        limits.memory_bytes = 8 << 20;
        limits
    };
    let hold = |source: &str| kind(source, small());
    assert_eq!(
        hold("(loop [xs nil i 0] (recur (cons (str i \"-some-text-that-takes-room\") xs) (inc i)))"),
        "memory_exceeded"
    );
    assert_eq!(
        hold("(def a (atom [])) (loop [i 0] (swap! a conj [i i i]) (recur (inc i)))"),
        "memory_exceeded"
    );
    assert_eq!(hold("(let [s (iterate inc 0)] (nth s 1000000) (first s))"), "memory_exceeded");
    assert_eq!(hold("(let [s (map (fn [x] [x x]) (range 1000000))] (count s) (first s))"), "memory_exceeded");
    assert_eq!(hold("(group-by str (range 1000000))"), "memory_exceeded");
    assert_eq!(hold("(loop [m {} i 0] (recur (assoc m i [i]) (inc i)))"), "memory_exceeded");
    // Garbage does not count.
    assert_eq!(
        hold(
            "(loop [i 0 s \"\"] (if (< i 100000) (recur (inc i) (str \"some text that is thrown away \" i)) s))"
        ),
        "done"
    );
    assert_eq!(hold("(reduce + (map (fn [x] (count (vec (range x)))) (repeat 300 1000)))"), "done");
    assert_eq!(hold("(count (filter odd? (map inc (range 200000))))"), "done");
}

#[test]
fn an_atom_that_holds_itself_and_cells_that_hold_themselves() {
    ends("(def a (atom nil)) (reset! a a) (identical? a @a)", "done");
    ends("(def a (atom nil)) (reset! a [a]) 1", "done");
    ends("(def s (lazy-seq (cons 1 (take 2 s)))) (take 3 s)", "done");
    ends("(def s (lazy-seq s)) (first s)", "invalid_argument");
    ends(
        "(def fibs (lazy-cat [0 1] (map + fibs (rest fibs)))) (def answer (nth fibs 50)) (def fibs nil) answer",
        "done",
    );
}

#[test]
fn prints_and_tools_are_counted() {
    let mut limits = Limits::default();
    limits.tool_calls = 3;
    assert_eq!(
        kind("(dotimes [i 5000] (println i))", limits),
        "done",
        "prints are cut, and do not end a program"
    );
    let inputs = Inputs::default();
    let program = engine().compile("(println (apply str (repeat 5000 \"a\")))", &inputs).unwrap();
    let MachineOutcome::Finished(finished) = engine().start(&program, inputs).run() else {
        panic!("it waits")
    };
    assert_eq!(finished.prints[0].len(), 2003);
}

#[test]
fn deep_values_are_dropped_on_a_small_stack() {
    let work = || {
        ends("(count (reduce (fn [s x] (cons x s)) nil (range 300000)))", "done");
        ends("(loop [s nil i 0] (if (< i 100000) (recur (lazy-seq (cons i s)) (inc i)) (do s 1)))", "done");
        ends("(do (reduce (fn [s _] (map inc s)) [1] (range 100000)) 1)", "done");
        ends("(reduce (fn [v _] [v]) [] (range 1000000))", "nesting_exceeded");
    };
    std::thread::Builder::new().stack_size(512 << 10).spawn(work).unwrap().join().unwrap();
}

#[test]
fn deep_source_is_refused() {
    let deep =
        |open: &str, close: &str, levels: usize| format!("{}1{}", open.repeat(levels), close.repeat(levels));
    for levels in [100, 1_000, 50_000] {
        for (open, close) in [
            ("(inc ", ")"),
            ("[", "]"),
            ("{:a ", "}"),
            ("(let [x 1] ", ")"),
            ("(if true ", ")"),
            ("(fn [] ", ")"),
        ] {
            let ended = kind(&deep(open, close, levels), Limits::default());
            assert!(["done", "nesting_exceeded"].contains(&ended.as_str()), "{open} {levels} {ended}");
        }
    }
    ends(&format!("(-> 1 {})", "inc ".repeat(5000)), "nesting_exceeded");
    ends(&format!("(+ {})", "1 ".repeat(5000)), "done");
    ends(&format!("(cond {} :else 1)", "false 1 ".repeat(3000)), "done");
}

#[test]
fn failures_leave_the_memory_as_it_was() {
    let mut memory = Memory::new();
    memory.define("x", backstitch_lisp::Value::Integer(1), None);
    let inputs = Inputs { memory, ..Inputs::default() };
    let program = engine().compile("(def x 2) (loop [] (recur))", &inputs).unwrap();
    let MachineOutcome::Finished(finished) = engine().start(&program, inputs).run() else {
        panic!("it waits")
    };
    assert_eq!(finished.memory.get("x").unwrap().value, backstitch_lisp::Value::Integer(1));
}
