//! Stored values, functions and memories.

use backstitch_lisp::{
    Engine, Inputs, Limits, MachineOutcome, Memory, ProgramResult, Value, read_edn, restore_changes,
    restore_memory, restore_value, store_changes, store_memory, store_value, to_edn,
};
use proptest::prelude::*;
use serde_json::{Value as Json, json};

use crate::generate::value;
use crate::support::engine;

fn inputs(memory: Memory) -> Inputs {
    Inputs { memory, ..Inputs::default() }
}

pub(crate) fn run(source: &str, memory: Memory) -> ProgramResult {
    let inputs = inputs(memory);
    let program = engine().compile(source, &inputs).unwrap_or_else(|error| panic!("{source}\n{error}"));
    match engine().start(&program, inputs).run() {
        MachineOutcome::Finished(finished) => *finished,
        _ => panic!("{source} waits for the host"),
    }
}

/// Runs a program, stores its memory as text, and restores it under another engine.
pub(crate) fn leave_behind(source: &str) -> Memory {
    let memory = run(source, Memory::new()).memory;
    let text = store_memory(&memory, &Limits::default()).expect("a document").to_string();
    let document: Json = serde_json::from_str(&text).expect("JSON");
    let restored = restore_memory(&document, &Engine::new(), &Inputs::default())
        .unwrap_or_else(|e| panic!("{source}\n{e}"));
    let again = store_memory(&restored, &Limits::default()).expect("a document");
    assert_eq!(again.to_string(), text, "storing a restored memory gives the same document");
    restored
}

#[track_caller]
fn survives(before: &str, after: &str, expected: &str) {
    let finished = run(after, leave_behind(before));
    match finished.result {
        Ok(value) => assert_eq!(to_edn(&value), expected, "{after}"),
        Err(error) => panic!("{after}\n{error}"),
    }
}

proptest! {
    #[test]
    fn values_come_back(value in value()) {
        let document = store_value(&value, &Limits::default()).unwrap();
        let text = document.to_string();
        let parsed: Json = serde_json::from_str(&text).unwrap();
        let restored = restore_value(&parsed, engine(), &mut Inputs::default()).unwrap();
        prop_assert_eq!(to_edn(&restored), to_edn(&value));
        prop_assert_eq!(&restored, &value);
    }
}

#[test]
fn definitions_with_their_docstrings_and_order() {
    let memory = leave_behind("(def b \"The b\" 1) (def a 2) (def b \"Still b\" 3)");
    let shown: Vec<(String, String, Option<String>)> = memory
        .definitions()
        .iter()
        .map(|definition| {
            (
                definition.name.to_string(),
                to_edn(&definition.value),
                definition.doc.as_deref().map(str::to_owned),
            )
        })
        .collect();
    let expected = [("b", "3", Some("Still b")), ("a", "2", None)];
    let expected =
        expected.map(|(name, value, doc)| (name.to_owned(), value.to_owned(), doc.map(str::to_owned)));
    assert_eq!(shown, expected);
}

#[test]
fn functions_and_what_they_captured() {
    survives("(defn add [a b] (+ a b))", "(add 1 2)", "3");
    survives("(def add (let [n 5] (fn [x] (+ x n))))", "(add 1)", "6");
    survives("(def f #(* % 2))", "(map f [1 2])", "(2 4)");
    survives(
        "(defn f ([x] (f x 10)) ([x y & more] [x y more]))",
        "[(f 1) (f 1 2 3)]",
        "[[1 10 nil] [1 2 (3)]]",
    );
    survives("(defn fact [n] (if (zero? n) 1 (* n (fact (dec n)))))", "(fact 10)", "3628800");
    survives("(def f (fn self [n] (if (zero? n) :done (self (dec n)))))", "(f 5)", ":done");
    survives(
        "(def f (let [g (let [n 2] (fn [x] (* x n))) k {:a [1]}] (fn [x] [(g x) k])))",
        "(f 4)",
        "[8 {:a [1]}]",
    );
    survives("(declare b) (defn a [] (b)) (defn b [] 7)", "(a)", "7");
    survives("(defn b [] 7) (defn a [] (b))", "(defn b [] 8) (a)", "8");
}

#[test]
fn functions_that_know_each_other() {
    survives(
        "(def even (letfn [(ev? [n] (if (zero? n) true (od? (dec n)))) (od? [n] (if (zero? n) false (ev? (dec n))))] ev?))",
        "[(even 10) (even 7)]",
        "[true false]",
    );
    survives("(def one (let [k 3] (letfn [(f [n] (if (zero? n) k (f (dec n))))] f)))", "(one 4)", "3");
}

#[test]
fn functions_of_the_library() {
    survives("(def f inc)", "(f 1)", "2");
    survives("(def f (comp inc (partial * 2)))", "(f 5)", "11");
    survives("(def fs {:a str :b (complement nil?)})", "[((:a fs) 1) ((:b fs) nil)]", "[\"1\" false]");
    survives("(def f (juxt first count))", "(f [1 2])", "[1 2]");
}

#[test]
fn atoms_keep_their_cells_and_identity() {
    survives(
        "(def a (atom {:n 1})) (def b a) (swap! a update :n inc)",
        "(swap! a assoc :m 5) [@a @b (= a b)]",
        "[{:m 5, :n 2} {:m 5, :n 2} true]",
    );
    survives(
        "(def counter (let [n (atom 0)] (fn [] (swap! n inc)))) (counter)",
        "[(counter) (counter)]",
        "[2 3]",
    );
    survives("(def a (atom nil)) (reset! a [a])", "(= a (first @a))", "true");
}

#[test]
fn one_function_stays_one_function() {
    survives("(def f (fn [x] x)) (def g f) (def h (fn [x] x))", "[(= f g) (= f h)]", "[true false]");
}

#[test]
fn sequences_come_back_realised() {
    survives("(def s (map inc (range 5)))", "[s (count s)]", "[(1 2 3 4 5) 5]");
    survives("(def m (first {:a 1}))", "[(key m) (val m)]", "[:a 1]");
    survives("(def e (ex-info \"no\" {:a 1}))", "[(ex-message e) (ex-data e)]", "[\"no\" {:a 1}]");
    survives(
        "(def d #inst \"2026-01-02\") (def r #\"a+\")",
        "[d (re-find r \"baa\")]",
        "[#inst \"2026-01-02T00:00:00.000-00:00\" \"aa\"]",
    );
}

#[test]
fn what_is_shared_is_stored_once() {
    let memory = run("(def a (reduce (fn [v _] [v v]) [1] (range 60)))", Memory::new()).memory;
    let document = store_memory(&memory, &Limits::default()).unwrap();
    assert!(document.to_string().len() < 5_000);
    let restored = restore_memory(&document, engine(), &Inputs::default()).unwrap();
    assert_eq!(restored.get("a").unwrap().value.depth(), 61);
}

#[test]
fn maps_of_json_stay_flexible() {
    let value = backstitch_lisp::from_json(&json!({"a": {"b": 1}}), &Limits::default()).unwrap();
    let document = store_value(&value, &Limits::default()).unwrap();
    let Value::Map(map) = restore_value(&document, engine(), &mut Inputs::default()).unwrap() else {
        panic!()
    };
    assert!(map.is_flexible());
}

#[test]
fn edn_and_stored_forms_agree() {
    let value = read_edn("{:a [1 (2 3) #{4}]}", &Limits::default()).unwrap();
    let document = store_value(&value, &Limits::default()).unwrap();
    assert_eq!(restore_value(&document, engine(), &mut Inputs::default()).unwrap(), value);
}

#[test]
fn aliases_outlive_the_program_that_required_them() {
    let before = "(require '[clojure.string :as s :refer [join]] '[clojure.set :as sets])
                  (defn shout [x] (s/upper-case (join \"-\" x)))";
    survives(before, "(shout [\"a\" \"b\"])", "\"A-B\"");
    survives(before, "[(s/trim \" x \") (sets/union #{1} #{2}) (join [1 2])]", "[\"x\" #{1 2} \"12\"]");
}

#[test]
fn functions_may_name_tools_and_data_that_are_gone() {
    let tools = || backstitch_lisp::Tools::new().with("price", ["item"]).with("send_mail", ["to"]);
    let data = || [(Value::keyword("rate"), Value::Integer(3))].into_iter().collect();
    let source = "(defn a [x] (tool/price x)) (defn b [x] (price x)) (defn c [x] (map tool/send-mail x)) (defn d [x] (* rate x))
                  (defn e [] 5)";
    let before = Inputs { tools: tools(), data: data(), ..Inputs::default() };
    let program = engine().compile(source, &before).unwrap();
    let MachineOutcome::Finished(finished) = engine().start(&program, before).run() else {
        panic!("it waits")
    };
    let document = store_memory(&finished.memory, &Limits::default()).unwrap();
    // Without them everything is restored, and only the use of a missing one fails.
    let memory = restore_memory(&document, engine(), &Inputs::default()).unwrap();
    assert_eq!(store_memory(&memory, &Limits::default()).unwrap(), document);
    let ends = |source: &str| match run(source, memory.clone()).result {
        Ok(value) => to_edn(&value),
        Err(error) => error.kind().name().to_owned(),
    };
    assert_eq!(ends("(e)"), "5");
    for source in ["(a 1)", "(b 1)", "(c [1])"] {
        assert_eq!(ends(source), "unknown_tool", "{source}");
    }
    assert_eq!(ends("(d 2)"), "type_error");
    // With them everything works as before.
    let after = Inputs { tools: tools(), data: data(), ..Inputs::default() };
    let memory = restore_memory(&document, engine(), &after).unwrap();
    let after = Inputs { memory, ..after };
    let program = engine().compile("(d 2)", &after).unwrap();
    let MachineOutcome::Finished(finished) = engine().start(&program, after).run() else {
        panic!("it waits")
    };
    assert_eq!(finished.result.unwrap(), Value::Integer(6));
}

#[test]
fn what_branches_make_is_never_made_twice() {
    let first = leave_behind("(def a (first (pmap atom [1]))) (def f (first (pmap (fn [x] (fn [] x)) [1])))");
    let second = run(
        "(def b (first (pmap atom [2]))) (def g (first (pmap (fn [x] (fn [] x)) [2]))) [@a @b (= a b) (= f g) (f) (g)]",
        first,
    );
    assert_eq!(to_edn(&second.result.unwrap()), "[1 2 false false 1 2]");
}

#[test]
fn atoms_inside_of_maps_stay() {
    // Many entries, so that temporary values of one reuse the addresses of another.
    let before = "(def m (atom {})) (doseq [i (range 40)] (swap! m assoc (list i) (atom i))) (def nested {:a {:b [(atom 1)]} :c #{(atom 2)}})";
    survives(
        before,
        "[(map deref (vals @m)) @(first (:b (:a nested))) (map deref (:c nested))]",
        &format!("[({}) 1 (2)]", (0..40).map(|i| i.to_string()).collect::<Vec<_>>().join(" ")),
    );
}

#[test]
fn changes_one_after_the_other_are_the_memory() {
    let programs = [
        "(declare later) (def rows [{:a 1} {:a 2}]) (defn total \"sums\" [xs] (reduce + (map :a xs))) (def counter (atom 0))
         (defn uses-later [] (later 1)) (total rows)",
        "(swap! counter inc) (defn later [x] (+ x @counter)) (let [k 10] (def closes (fn [x] (+ x k)))) (def gone (atom 7)) [counter]",
        "(def rows (conj rows {:a 3})) (def gone nil) (swap! counter (fn [_] {:deep [1 2]})) {:rows rows :f closes}",
    ];
    let mut memory = Memory::new();
    let mut restored = Inputs::default();
    for source in programs {
        let finished = run(source, memory.clone());
        let result = finished.result.unwrap();
        let document =
            store_changes(&memory, &finished.memory, std::slice::from_ref(&result), &Limits::default())
                .unwrap();
        let values = restore_changes(&document, engine(), &mut restored).unwrap();
        assert_eq!(to_edn(&values[0]), to_edn(&result), "{source}");
        memory = finished.memory;
        let names = |memory: &Memory| -> Vec<String> {
            memory
                .definitions()
                .iter()
                .map(|one| format!("{} {:?} {:?}", one.name, one.doc, one.returned))
                .collect()
        };
        assert_eq!(names(&restored.memory), names(&memory), "{source}");
        assert_eq!(restored.memory.atoms().count(), memory.atoms().count(), "{source}");
    }
    // The size of a document follows the size of the change.
    let small = run("(def x 1)", memory.clone()).memory;
    let text = store_changes(&memory, &small, &[], &Limits::default()).unwrap().to_string();
    assert!(text.len() < 300, "{text}");
    let both = |source: &str| {
        let one = to_edn(&run(source, memory.clone()).result.unwrap());
        assert_eq!(to_edn(&run(source, restored.memory.clone()).result.unwrap()), one, "{source}");
        one
    };
    assert_eq!(both("[(total rows) (closes 5) @counter gone]"), "[6 15 {:deep [1 2]} nil]");
    assert_eq!(both("(reset! counter 4) (uses-later)"), "5");
}
