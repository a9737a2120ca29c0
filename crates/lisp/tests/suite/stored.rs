//! Values, functions and memories that outlive a process.

use backstitch_lisp::{
    Engine, ErrorKind, Finished, Inputs, Limits, Memory, Outcome, Value, read_edn, restore_changes,
    restore_memory, restore_value, store_changes, store_memory, store_value, to_edn,
};
use proptest::prelude::*;
use serde_json::{Value as Json, json};

use crate::generate::value;
use crate::support::engine;

fn inputs(memory: Memory) -> Inputs {
    Inputs { memory, ..Inputs::default() }
}

fn run(source: &str, memory: Memory) -> Finished {
    let inputs = inputs(memory);
    let program = engine().compile(source, &inputs).unwrap_or_else(|error| panic!("{source}\n{error}"));
    match engine().start(&program, inputs).run() {
        Outcome::Finished(finished) => *finished,
        _ => panic!("{source} waits for the host"),
    }
}

/// Runs a program, stores the memory it leaves as text, and brings it back under another engine.
fn leave_behind(source: &str) -> Memory {
    let memory = run(source, Memory::new()).memory;
    let text = store_memory(&memory, &Limits::default()).expect("a document").to_string();
    let document: Json = serde_json::from_str(&text).expect("JSON");
    let restored = restore_memory(&document, &Engine::new(), &Inputs::default())
        .unwrap_or_else(|e| panic!("{source}\n{e}"));
    let again = store_memory(&restored, &Limits::default()).expect("a document");
    assert_eq!(again.to_string(), text, "storing what was restored gives the same document");
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
fn a_document_has_a_bounded_size() {
    let mut limits = Limits::default();
    limits.memory_bytes = 1_000;
    let large = Value::vector((0..1_000).map(Value::Integer).collect());
    assert_eq!(store_value(&large, &limits).unwrap_err().kind(), ErrorKind::SizeExceeded);
}

#[track_caller]
fn refused(document: Json, kind: ErrorKind) {
    let error = restore_value(&document, engine(), &mut Inputs::default()).err();
    assert_eq!(error.as_ref().map(|error| error.kind()), Some(kind), "{document}: {error:?}");
}

#[test]
fn damaged_documents_are_refused() {
    refused(json!(null), ErrorKind::InvalidStored);
    refused(json!({"version": 2, "nodes": [], "root": null}), ErrorKind::InvalidStored);
    refused(json!({"version": 1}), ErrorKind::InvalidStored);
    for root in [
        json!({}),
        json!([]),
        json!([1]),
        json!(["zzz"]),
        json!(["r", 0]),
        json!(["r", -1]),
        json!(1.5),
        json!(1e300),
        json!(["c", "ab"]),
        json!(["n", "x"]),
        json!(["q", "1", "0"]),
        json!(["q", "4", "2"]),
        json!(["f", "x"]),
        json!(["native", "no-such"]),
        json!(["t", "(+ 1 2)"]),
        json!(["atom", "x"]),
    ] {
        refused(json!({"version": 1, "nodes": [], "root": root}), ErrorKind::InvalidStored);
    }
    for node in [
        json!(["v", ["r", 0]]),
        json!(["m", 1]),
        json!(["e", 1]),
        json!(["x", "no_such_kind", "", null, null, null]),
        json!(["x"]),
        json!(["fn"]),
        json!(["fn", {}]),
        json!(["fn", {"text": "(+ 1 2)", "names": [], "member": 0, "stamp": 1}]),
        json!(["fn", {"text": "(fn [x", "names": [], "member": 0, "stamp": 1}]),
        json!(["fn", {"text": "(fn [x] (no/such x))", "names": [], "member": 0, "stamp": 1}]),
        json!(["fn", {"text": "(fn [x] x) (fn [y] y)", "names": [], "member": 0, "stamp": 1}]),
        json!(["fn", {"text": "(fn [x] x)", "names": [], "member": 7, "stamp": 1}]),
        json!(["fn", {"text": "(fn [x] y)", "names": ["y"], "member": 0, "stamp": 1}]),
        json!(["fn", {"text": "(fn [x] x)", "names": ["y"], "member": 0, "stamp": 1}, 5]),
        json!(["fn", {"library": 999999, "about": "", "names": [], "member": 0, "stamp": 1}]),
        json!(5),
    ] {
        refused(json!({"version": 1, "nodes": [node], "root": ["r", 0]}), ErrorKind::InvalidStored);
    }
    refused(json!({"version": 1, "nodes": [], "root": ["re", "("]}), ErrorKind::InvalidRegex);
}

#[test]
fn limits_hold_for_what_comes_back() {
    let nodes: Vec<Json> =
        std::iter::once(json!(["v"])).chain((0..5_000).map(|at| json!(["v", ["r", at]]))).collect();
    refused(json!({"version": 1, "nodes": nodes, "root": null}), ErrorKind::NestingExceeded);
    let huge = "9".repeat(1_000_000);
    refused(json!({"version": 1, "nodes": [], "root": ["n", huge]}), ErrorKind::NumberSizeExceeded);
}

#[test]
fn a_million_nested_vectors_are_refused_and_dropped() {
    let document = json!({"version": 1, "nodes": [["v"]], "root": ["r", 0]});
    assert!(restore_value(&document, engine(), &mut Inputs::default()).is_ok());
}

/// Small changes to a good document: each restores or fails, and nothing panics.
#[test]
fn mutated_documents_restore_or_fail() {
    let memory = run(
        "(def a (atom [1 2.5 1/3 \\a \"b\" :c 'd #{1} {:e nil}])) (def f (let [n 5] (fn [x] (+ x n)))) (def g (comp inc f))
         (def e (ex-info \"x\" {})) (def s (map inc [1 2]))",
        Memory::new(),
    )
    .memory;
    let text = store_memory(&memory, &Limits::default()).unwrap().to_string();
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut random = |bound: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % bound.max(1) as u64) as usize
    };
    let mut restored = 0;
    for _ in 0..20_000 {
        let mut bytes = text.as_bytes().to_vec();
        for _ in 0..=random(3) {
            let at = random(bytes.len());
            match random(3) {
                0 => bytes[at] = b"0123456789[]{}\",:abrvfnmx"[random(25)],
                1 => {
                    bytes.remove(at);
                }
                _ => {
                    let end = (at + random(20)).min(bytes.len());
                    let copied = bytes[at..end].to_vec();
                    let to = random(bytes.len());
                    bytes.splice(to..to, copied);
                }
            }
        }
        if let Ok(document) = serde_json::from_slice::<Json>(&bytes) {
            restored += usize::from(restore_memory(&document, engine(), &Inputs::default()).is_ok());
        }
    }
    assert!(restored > 100, "{restored}");
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
    let Outcome::Finished(finished) = engine().start(&program, before).run() else { panic!("it waits") };
    let document = store_memory(&finished.memory, &Limits::default()).unwrap();
    // Without them everything comes back, and only a use of what is gone fails.
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
    // With them it is as it was.
    let after = Inputs { tools: tools(), data: data(), ..Inputs::default() };
    let memory = restore_memory(&document, engine(), &after).unwrap();
    let after = Inputs { memory, ..after };
    let program = engine().compile("(d 2)", &after).unwrap();
    let Outcome::Finished(finished) = engine().start(&program, after).run() else { panic!("it waits") };
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
    // Many entries, so that what is made for one of them lies where another lay.
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
    let both = |source: &str| {
        let one = to_edn(&run(source, memory.clone()).result.unwrap());
        assert_eq!(to_edn(&run(source, restored.memory.clone()).result.unwrap()), one, "{source}");
        one
    };
    assert_eq!(both("[(total rows) (closes 5) @counter gone]"), "[6 15 {:deep [1 2]} nil]");
    assert_eq!(both("(reset! counter 4) (uses-later)"), "5");
    // A change costs what it changes.
    let small = run("(def x 1)", memory.clone()).memory;
    let text = store_changes(&memory, &small, &[], &Limits::default()).unwrap().to_string();
    assert!(text.len() < 300, "{text}");
}

#[test]
fn damaged_changes_are_refused() {
    let good =
        store_changes(&Memory::new(), &leave_behind("(def x [1 2])"), &[], &Limits::default()).unwrap();
    for field in
        ["version", "nodes", "definitions", "atoms", "next_stamp", "values", "forgotten", "dropped", "names"]
    {
        let mut bad = good.clone();
        bad.as_object_mut().unwrap().remove(field);
        let mut inputs = Inputs::default();
        assert!(restore_changes(&bad, engine(), &mut inputs).is_err(), "{field}");
        assert!(inputs.memory.is_empty());
    }
}
