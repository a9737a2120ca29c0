//! Tools: suspending anywhere, resuming later, concurrent calls, and deterministic results.

use std::collections::VecDeque;

use backstitch_lisp::{Inputs, MachineOutcome, ProgramResult, Request, Tools, Value, to_edn};

use crate::support::engine;

fn inputs() -> Inputs {
    let tools =
        Tools::new().with("twice", ["n"]).with("fetch_user", ["user_id", "verbose"]).with("fails", ["x"]);
    Inputs { tools, ..Inputs::default() }
}

fn answer(request: &Request) -> Result<Value, String> {
    match request {
        Request::Tool(call) => {
            let Value::Map(arguments) = &call.arguments else { return Err("no map".to_owned()) };
            match &*call.name {
                "twice" => match arguments.get(&Value::string("n")) {
                    Some(Value::Integer(n)) => Ok(Value::Integer(n * 2)),
                    _ => Err("n is missing".to_owned()),
                },
                "fetch_user" => Ok(call.arguments.clone()),
                _ => Err("it broke".to_owned()),
            }
        }
        _ => Ok(Value::Nil),
    }
}

/// Runs with every answer given one at a time, the newest or the oldest request first.
fn run_with(source: &str, inputs: Inputs, newest_first: bool) -> (ProgramResult, Vec<String>) {
    let program = engine().compile(source, &inputs).unwrap_or_else(|error| panic!("{error}"));
    let mut machine = engine().start(&program, inputs);
    let mut calls = Vec::new();
    loop {
        match machine.run() {
            MachineOutcome::Finished(finished) => return (*finished, calls),
            MachineOutcome::Suspended(requests) => {
                let mut requests = VecDeque::from(requests);
                let request =
                    if newest_first { requests.pop_back() } else { requests.pop_front() }.expect("a request");
                if let Request::Tool(call) = &request {
                    calls.push(format!("{} {} {}", call.path, call.name, to_edn(&call.arguments)));
                }
                assert!(machine.resume(request.path(), answer(&request)));
            }
        }
    }
}

#[track_caller]
fn gives(source: &str, expected: &str) {
    let (finished, _) = run_with(source, inputs(), false);
    match finished.result {
        Ok(value) => assert_eq!(to_edn(&value), expected, "{source}"),
        Err(error) => panic!("{source}\n{error}"),
    }
}

#[track_caller]
fn fails(source: &str, kind: &str) {
    let kind_of = |source: &str| {
        let inputs = inputs();
        if let Err(error) = engine().compile(source, &inputs) {
            return error.kind().name();
        }
        match run_with(source, inputs, false).0.result {
            Ok(value) => panic!("{source} gives {}", to_edn(&value)),
            Err(error) => error.kind().name(),
        }
    };
    assert_eq!(kind_of(source), kind, "{source}");
}

#[test]
fn a_tool_may_be_called_anywhere() {
    gives("(tool/twice {:n 4})", "8");
    gives("(+ 1 (tool/twice :n 4))", "9");
    gives("(tool/twice 4)", "8");
    gives("(map (fn [x] (tool/twice x)) [1 2])", "(2 4)");
    gives("(map tool/twice [1 2])", "(2 4)");
    gives("(reduce (fn [a x] (+ a (tool/twice x))) 0 [1 2 3])", "12");
    gives("(sort-by (fn [x] (tool/twice (- x))) [1 3 2])", "(3 2 1)");
    gives("(sort (fn [a b] (< (tool/twice a) (tool/twice b))) [3 1 2])", "(1 2 3)");
    gives("(for [x [1 2] :when (> (tool/twice x) 2)] x)", "(2)");
    gives("(let [a (atom 1)] (swap! a tool/twice) @a)", "2");
    gives("(filter (fn [x] (> (tool/twice x) 2)) [1 2 3])", "(2 3)");
    gives("(group-by (fn [x] (tool/twice x)) [1 2])", "{2 [1], 4 [2]}");
    gives("(apply + (map tool/twice [1 2]))", "6");
    gives("(loop [i 0] (if (< i 10) (recur (+ 1 (tool/twice i))) i))", "15");
    gives("(some (fn [x] (when (> (tool/twice x) 3) x)) [1 2 3])", "2");
    gives("(update {:a 2} :a tool/twice)", "{:a 4}");
    gives("(into {} (map (fn [x] [x (tool/twice x)])) [1 2])", "{1 2, 2 4}");
    gives("(try (tool/fails 1) (catch Exception e :caught))", ":caught");
    fails("(tool/fails 1)", "tool_error");
    fails("(tool/nope 1)", "unknown_tool");
    fails("(tool/twice 1 2 3)", "invalid_tool_arguments");
}

#[test]
fn whatever_looks_at_a_lazy_sequence_may_meet_a_tool() {
    gives("(count (map tool/twice [1 2]))", "2");
    gives("(= [2 4] (map tool/twice [1 2]))", "true");
    gives("(str (map tool/twice [1 2]))", "\"(2 4)\"");
    gives("(sort (map tool/twice [2 1]))", "(2 4)");
    gives("(vec (map tool/twice [1 2]))", "[2 4]");
    gives("(json/generate-string {:a (map tool/twice [1 2])})", "\"{\\\"a\\\":[2,4]}\"");
    gives("(pr-str {:a [(map tool/twice [1 2])]})", "\"{:a [(2 4)]}\"");
    gives("(def x {:a (map tool/twice [1])}) (:a x)", "(2)");
    gives("(let [[a b] (map tool/twice [1 2])] (+ a b))", "6");
    gives("(case (map tool/twice [1]) [2] :two :none)", ":two");
    gives("{(map tool/twice [1]) :k}", "{(2) :k}");
    gives("(get {[2] :found} (map tool/twice [1]))", ":found");
    gives("(first (map tool/twice [1 2 3]))", "2");
    gives("(clojure.string/join \",\" (map tool/twice [1 2]))", "\"2,4\"");
    gives("(tool/fetch_user {:user-id (map tool/twice [1])})", "{\"user_id\" (2)}");
}

#[test]
fn only_what_is_needed_is_called() {
    let (finished, calls) = run_with("(first (map tool/twice [1 2 3]))", inputs(), false);
    assert_eq!(calls, ["0 twice {\"n\" 1}"]);
    assert_eq!(finished.tool_calls, 1);
}

#[test]
fn arguments_follow_the_schema() {
    gives("(tool/fetch-user 7 true)", "{\"user_id\" 7, \"verbose\" true}");
    gives("(tool/fetch-user {:user-id 7})", "{\"user_id\" 7}");
    gives("(tool/fetch-user :user_id 7 :some-thing 1)", "{\"some-thing\" 1, \"user_id\" 7}");
    gives("(tool/fetch-user)", "{}");
}

#[test]
fn prints_do_not_happen_twice() {
    let (finished, _) =
        run_with("(println \"a\") (tool/twice 1) (println \"b\" (tool/twice 2))", inputs(), false);
    assert_eq!(finished.prints, ["a", "b 4"]);
}

#[test]
fn branches_wait_together_and_the_order_of_answers_does_not_matter() {
    let source = "(def r (pmap (fn [x] (println x) (+ (tool/twice x) (tool/twice (inc x)))) [1 2 3])) r";
    let inputs = inputs();
    let program = engine().compile(source, &inputs).unwrap();
    let MachineOutcome::Suspended(requests) = engine().start(&program, inputs).run() else {
        panic!("it waits")
    };
    assert_eq!(requests.len(), 3);

    let (oldest, mut calls) = run_with(source, self::inputs(), false);
    let (newest, mut reversed) = run_with(source, self::inputs(), true);
    calls.sort();
    reversed.sort();
    assert_eq!(calls, reversed);
    assert_eq!(oldest.result, newest.result);
    assert_eq!(oldest.prints, newest.prints);
    assert_eq!(oldest.fuel_used, newest.fuel_used);
    assert_eq!(to_edn(&oldest.result.unwrap()), "(6 10 14)");
    assert_eq!(oldest.prints, ["1", "2", "3"]);
}

#[test]
fn effects_of_branches_stay_inside() {
    gives("(pcalls (fn [] (tool/twice 1)) (fn [] 5))", "(2 5)");
    gives("(pmap (fn [x] (let [a (atom 0)] (swap! a + x) @a)) [1 2])", "(1 2)");
    fails("(let [a (atom 0)] (pmap (fn [x] (swap! a + x)) [1 2]))", "forbidden_effect");
    fails("(pmap (fn [x] (def y x)) [1 2])", "forbidden_effect");
    fails("(pmap (fn [x] (return x)) [1 2])", "forbidden_effect");
    fails("(let [s (map tool/twice [1 2])] (pmap (fn [i] (nth s i)) [0 1]))", "forbidden_effect");
    gives("(let [s (map inc [1 2])] (pmap (fn [i] (nth s i)) [0 1]))", "(2 3)");
    fails("(pmap (fn [x] (/ 1 x)) [1 0])", "arithmetic_error");
    gives("(try (pmap (fn [x] (/ 1 x)) [1 0]) (catch ArithmeticException e :caught))", ":caught");
    gives("(pmap (fn [x] (pmap (fn [y] (tool/twice (+ x y))) [1 2])) [10 20])", "((22 24) (42 44))");
    gives("(pmap + [1 2] [10 20 30])", "(11 22)");
    gives("(pmap inc [])", "()");
    gives("(count (pmap inc (range 200)))", "200");
}

#[test]
fn a_task_is_done_once() {
    let source = "(task \"a\" (tool/twice 4))";
    let (finished, calls) = run_with(source, inputs(), false);
    assert_eq!(to_edn(&finished.result.unwrap()), "8");
    assert_eq!(calls.len(), 1);
    let journal = [(Value::string("a"), Value::Integer(99))].into_iter().collect();
    let (finished, calls) = run_with(source, Inputs { journal, ..inputs() }, false);
    assert_eq!(to_edn(&finished.result.unwrap()), "99");
    assert!(calls.is_empty());
    // The same id twice in one program is the same task.
    let (_, calls) = run_with("[(task \"a\" (tool/twice 1)) (task \"a\" (tool/twice 1))]", inputs(), false);
    assert_eq!(calls.len(), 1);
}

#[test]
fn return_and_fail_end_the_program() {
    let (finished, calls) =
        run_with("(map (fn [x] (when (= x 2) (return {:x x})) (tool/twice x)) [1 2 3])", inputs(), false);
    assert_eq!(finished.signal, Some(backstitch_lisp::Signal::Return));
    assert_eq!(to_edn(&finished.result.unwrap()), "{:x 2}");
    assert_eq!(calls.len(), 1);
    let (finished, _) = run_with("(def x 1) (try (fail :why) (catch Throwable e 1))", inputs(), false);
    assert_eq!(finished.signal, Some(backstitch_lisp::Signal::Fail));
    assert_eq!(to_edn(&finished.result.unwrap()), ":why");
    assert!(finished.memory.is_empty());
}

#[test]
fn the_same_seed_gives_the_same_numbers() {
    let source = "[(rand-int 1000) (shuffle (range 10)) (pmap (fn [_] (rand-int 1000)) [1 2])]";
    let run = |seed| to_edn(&run_with(source, Inputs { seed, ..inputs() }, false).0.result.unwrap());
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}
