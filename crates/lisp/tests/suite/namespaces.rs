//! Resolution of names: locals, definitions, the library, tools and data.

use backstitch_lisp::{Inputs, Limits, MachineOutcome, Map, Memory, Tools, Value, from_json, to_edn};

use crate::support::engine;

fn data(json: serde_json::Value) -> Map {
    match from_json(&json, &Limits::default()) {
        Ok(Value::Map(map)) => map,
        _ => Map::new(),
    }
}

fn inputs() -> Inputs {
    let mut memory = Memory::new();
    memory.define("mine", Value::Integer(7), Some("a number"));
    memory.define("both", Value::Integer(1), None);
    Inputs {
        data: data(serde_json::json!({"rows": [{"id": 1}, {"id": 2}], "both": 2, "clash": 3, "count": 9})),
        tools: Tools::new().with("clash", ["x"]).with("fetch", ["x"]),
        memory,
        history: vec![Value::Integer(1), Value::Integer(2), Value::Integer(3)],
        ..Inputs::default()
    }
}

fn run(source: &str, inputs: Inputs) -> Result<String, String> {
    let program = engine().compile(source, &inputs).map_err(|error| error.render())?;
    match engine().start(&program, inputs).run() {
        MachineOutcome::Finished(finished) => {
            finished.result.map(|value| to_edn(&value)).map_err(|error| error.render())
        }
        MachineOutcome::Suspended(requests) => Ok(format!("asks {}", requests[0].path())),
    }
}

#[track_caller]
fn gives(source: &str, expected: &str) {
    assert_eq!(run(source, inputs()).as_deref(), Ok(expected), "{source}");
}

#[track_caller]
fn fails(source: &str, text: &str) {
    match run(source, inputs()) {
        Ok(value) => panic!("{source} gives {value}"),
        Err(error) => assert!(error.contains(text), "{source}\n{error}"),
    }
}

#[test]
fn bare_names_fall_back_to_tools_and_data() {
    gives("(count rows)", "2");
    gives("(fetch 1)", "asks 0");
    gives("(map fetch [1])", "asks 0");
    fails("clash", "ambiguous_reference");
    fails("(clash 1)", "ambiguous_reference");
    gives("data/clash", "3");
    gives("(tool/clash 1)", "asks 0");
}

#[test]
fn nearer_names_win_and_full_names_bypass_them() {
    gives("both", "1");
    gives("data/both", "2");
    gives("user/both", "1");
    gives("(let [both 5] [both user/both data/both])", "[5 1 2]");
    gives("(let [rows 1] [rows (count data/rows)])", "[1 2]");
    // A builtin wins over data of the same name.
    gives("(count [1 2])", "2");
    gives("data/count", "9");
    gives("(def clash 4) clash", "4");
    gives("(let [inc dec] (inc 5))", "4");
    gives("(let [inc dec] (clojure.core/inc 5))", "6");
    gives("mine", "7");
}

#[test]
fn a_name_falls_back_as_long_as_it_is_not_defined() {
    gives("(def rows (filter (fn [row] (> (:id row) 1)) rows)) (count rows)", "1");
    gives("(def rows (count rows)) [rows (count data/rows)]", "[2 2]");
    gives("(defn all [] (count rows)) (def rows [1 2 3]) [(all) (count rows)]", "[2 3]");
    gives("(def fetch (map fetch [1]))", "asks 0");
    // Code that is not executed defines nothing.
    gives("(when false (def rows 1)) (count rows)", "2");
    gives("(declare fetch) (fetch 1)", "asks 0");
    fails("(def clash (inc clash))", "ambiguous_reference");
    // A definition takes precedence from the moment it exists, and a full name has no other meaning.
    gives("(def rows [1]) (def rows (conj rows 2)) rows", "[1 2]");
    fails("(def rows (count user/rows))", "`rows` has no value yet");
    fails("(def nothing (inc nothing))", "`nothing` has no value yet");
    // As in Clojure, which does not fall back to other meanings of a name.
    fails("(def count (count [1]))", "`count` has no value yet");

    // The same holds if an earlier program mentioned the name and did not define it.
    let named = |source: &str| {
        let inputs = inputs();
        let program = engine().compile(source, &inputs).unwrap();
        match engine().start(&program, inputs).run() {
            MachineOutcome::Finished(finished) => finished.memory,
            MachineOutcome::Suspended(_) => panic!("it waits"),
        }
    };
    let memory = named("(when false (def rows 1))");
    assert_eq!(run("(count rows)", Inputs { memory, ..inputs() }).as_deref(), Ok("2"));
}

#[test]
fn tools_and_data_cannot_be_defined() {
    fails("(def data/rows 1)", "only names of user/ can be defined, not of data/");
    fails("(defn tool/fetch [x] x)", "only names of user/ can be defined, not of tool/");
    gives("(def user/rows 1) [rows (count data/rows)]", "[1 2]");
}

#[test]
fn unknown_names_are_explained() {
    fails("(ffirts [[1]])", "did you mean `ffirst`");
    fails("row", "rows");
    fails("(join \",\" [1])", "str/join");
    fails("(tool/fetsh 1)", "available tools: clash, fetch");
    fails("user/nothing", "unbound_var");
    fails("(foo.bar/baz 1)", "no namespace");
    fails("(clojure.string/upper 1)", "upper-case");
    fails("(.nope \"a\")", "there is no method");
    fails("(str/uper-case 1)", "did you mean `str/upper-case` or `str/lower-case`?");
    fails("data/missing", "there is no data item `missing`");
}

#[test]
fn history() {
    gives("[*1 *2 *3]", "[3 2 1]");
    assert_eq!(run("[*1 *2]", Inputs::default()).as_deref(), Ok("[nil nil]"));
}

#[test]
fn json_maps_answer_to_both_spellings() {
    gives("(map :id rows)", "(1 2)");
    gives("(map (fn [r] (get r \"id\")) rows)", "(1 2)");
    gives("(get (assoc (first rows) :x 1) \"x\")", "1");
    gives("(assoc (first rows) \"id\" 9)", "{:id 9}");
    gives("(get {:a 1} \"a\")", "nil");
    gives("(let [{:strs [id]} (first rows)] id)", "1");
}

#[test]
fn memory_grows_and_failures_roll_back() {
    let run_on = |memory: Memory, source: &str| {
        let inputs = Inputs { memory, ..Inputs::default() };
        let program = engine().compile(source, &inputs).unwrap();
        match engine().start(&program, inputs).run() {
            MachineOutcome::Finished(finished) => *finished,
            _ => panic!("it waits"),
        }
    };
    let first =
        run_on(Memory::new(), "(def a 1) (defn f \"adds\" [x] (+ x a)) (def counter (atom 0)) (def a 2)");
    let names: Vec<String> =
        first.memory.definitions().iter().map(|definition| definition.name.to_string()).collect();
    assert_eq!(names, ["a", "f", "counter"]);
    assert_eq!(first.memory.get("f").unwrap().doc.as_deref(), Some("adds"));

    let second = run_on(first.memory.clone(), "(swap! counter inc) (def g (fn [] (f 10))) [(g) @counter]");
    assert_eq!(to_edn(&second.result.unwrap()), "[12 1]");

    let failed = run_on(second.memory.clone(), "(swap! counter inc) (def a 100) (/ 1 0)");
    assert!(failed.result.is_err());
    assert!(failed.defined.is_empty());
    assert_eq!(first.defined.iter().map(|name| &**name).collect::<Vec<_>>(), ["a", "f", "counter"]);
    let same = run_on(second.memory.clone(), "(when false (def f 1)) (doseq [_ [1 2]] (def b 1)) (def a a)");
    assert_eq!(same.defined.iter().map(|name| &**name).collect::<Vec<_>>(), ["a", "b"]);
    let third = run_on(failed.memory, "[(g) @counter]");
    assert_eq!(to_edn(&third.result.unwrap()), "[12 1]");

    assert_eq!(second.memory.get("g").unwrap().returned.as_deref(), Some("integer"));
    assert_eq!(first.memory.get("f").unwrap().returned, None);

    // Redefining affects existing functions.
    let fourth = run_on(second.memory, "(def a 5) (g)");
    assert_eq!(to_edn(&fourth.result.unwrap()), "15");
    // Stored functions hold nothing lazy.
    let kept = run_on(Memory::new(), "(def f (let [xs (map inc [1 2])] (fn [] xs))) (f)");
    assert_eq!(to_edn(&kept.result.unwrap()), "(2 3)");
    let again = run_on(kept.memory, "(f)");
    assert_eq!(to_edn(&again.result.unwrap()), "(2 3)");
}

#[test]
fn what_the_library_keeps_for_itself_has_no_name() {
    for name in ["mapv*", "clojure.core/into*", "for-concat*", "str/replace-plain*", "sort*", "core/range*"] {
        let error = run(&format!("({name} 1 [2])"), Inputs::default()).unwrap_err();
        assert!(!error.contains("did you mean `mapv*`"), "{error}");
        assert!(
            ["unbound_var", "parse_error", "unsupported"].iter().any(|kind| error.starts_with(kind)),
            "{error}"
        );
    }
    gives("(list* 1 [2])", "(1 2)");
    gives("(defn sort* [x] [:mine x]) (sort* 1)", "[:mine 1]");
    let names = engine().names();
    assert!(names.iter().all(|name| !name.ends_with('*') || *name == "*" || *name == "list*"), "{names:?}");
}

#[test]
fn hints_offer_what_can_be_written() {
    let hint = |source: &str| run(source, Inputs::default()).unwrap_err();
    // No class, method or internal name is suggested for these.
    for source in ["(strin 1)", "(lon 1)", "(mapvv 1)", "(range* 1)", "(trim* 1)", "(date 1)", "(dat 1)"] {
        let error = hint(source);
        let offered = error.split("did you mean").nth(1).unwrap_or("");
        let names: Vec<&str> = offered.split('`').skip(1).step_by(2).collect();
        assert!(names.iter().all(|name| !name.starts_with('.') && !name.ends_with(['.', '*'])), "{error}");
        assert!(names.iter().all(|name| !name.starts_with(char::is_uppercase)), "{error}");
    }
    assert!(hint("(instance? Strin \"a\")").contains("`String`"));
    assert!(hint("(re-groups 1)").contains("re-find"));
    assert!(hint("(map re-matcher [1])").contains("re-seq"));
}

#[test]
fn changes_name_what_a_program_defined_and_forgot() {
    let after = |source: &str, memory: &Memory| {
        let inputs = Inputs { memory: memory.clone(), ..Inputs::default() };
        let program = engine().compile(source, &inputs).unwrap();
        match engine().start(&program, inputs).run() {
            MachineOutcome::Finished(finished) => finished.memory,
            MachineOutcome::Suspended(_) => panic!("{source} waits for the host"),
        }
    };
    let names = |new: &Memory, old: &Memory| -> Vec<String> {
        new.changes_since(old).defined.iter().map(|definition| definition.name.to_string()).collect()
    };
    let first = after("(def rows [1 2 [3]]) (def n 1) (defn f [x] x)", &Memory::new());
    assert_eq!(names(&first, &Memory::new()), ["rows", "n", "f"]);
    let same = after("(def n 1) (count rows)", &first);
    assert!(names(&same, &first).is_empty(), "though it was defined, see `Finished::defined`");
    let called = after("(f 1)", &same);
    assert_eq!(names(&called, &same), ["f"]);
    let mut second = after("(def extra 1) (def n 2) (def rows \"with a word\" rows)", &called);
    assert_eq!(names(&second, &called), ["rows", "n", "extra"]);
    second.forget("n");
    let changes = second.changes_since(&called);
    assert_eq!(changes.forgotten.iter().map(|name| &**name).collect::<Vec<_>>(), ["n"]);
    assert!(names(&after("(def lost 1) (/ 1 0)", &first), &first).is_empty());
}
