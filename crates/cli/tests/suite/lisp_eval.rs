//! `backstitch lisp eval --jsonl`.

use serde_json::{Value as Json, json};

use crate::command::backstitch_reading;

/// Returns the answers to lines of input, each of them one JSON object.
fn answers(lines: &[String]) -> Vec<Json> {
    let output = backstitch_reading(&(lines.join("\n") + "\n"), &["lisp", "eval", "--jsonl"]).worked();
    output.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Returns the answer to one case.
fn answer(case: Json) -> Json {
    let mut answers = answers(&[case.to_string()]);
    assert_eq!(answers.len(), 1);
    answers.remove(0)
}

#[test]
fn a_value_is_edn_text() {
    let answer = answer(json!({"id": "a", "program": "{:k [1 2.5 1/3 \\x \"s\"] nil #{}}"}));
    let value = "{nil #{}, :k [1 2.5 1/3 \\x \"s\"]}";
    assert_eq!(answer, json!({"v": 1, "id": "a", "value": value, "prints": [], "memory": "{}"}));
}

#[test]
fn ids_of_any_kind_come_back() {
    for id in [json!(7), json!("seven"), json!(null), json!(["a", 1])] {
        assert_eq!(answer(json!({"id": id.clone(), "program": "1"}))["id"], id);
    }
    assert_eq!(answer(json!({"program": "1"}))["id"], Json::Null);
}

#[test]
fn an_error_has_kind_message_and_place() {
    let answer = answer(json!({"id": 1, "program": "(def x 1)\n(+ x (frist [1 2]))"}));
    let error = &answer["error"];
    assert_eq!(error["kind"], "unbound_var");
    assert_eq!((&error["line"], &error["column"]), (&json!(2), &json!(7)));
    assert!(error["message"].as_str().unwrap().contains("frist"), "{error}");
    assert!(error["hint"].as_str().unwrap().contains("first"), "{error}");
    assert_eq!(answer.get("value"), None);
}

#[test]
fn an_error_while_running_has_its_place_too() {
    let answer = answer(json!({"id": 1, "program": "(println 1)\n(let [y 0]\n  (/ 1 y))"}));
    assert_eq!(answer["error"]["kind"], "arithmetic_error");
    assert_eq!((&answer["error"]["line"], &answer["error"]["column"]), (&json!(3), &json!(3)));
    assert_eq!(answer["prints"], json!(["1"]));
}

#[test]
fn prints_are_one_entry_for_each_call() {
    let answer = answer(json!({"program": "(doseq [x [1 \"two\" :three]] (println x x)) (prn \"q\")"}));
    assert_eq!(answer["prints"], json!(["1 1", "two two", ":three :three", "\"q\""]));
}

#[test]
fn signals_are_named() {
    let ended = answer(json!({"program": "(mapv (fn [x] (return x)) [1 2])"}));
    assert_eq!((&ended["value"], &ended["signal"]), (&json!("1"), &json!("return")));
    let failed = answer(json!({"program": "(fail :no)"}));
    assert_eq!((&failed["value"], &failed["signal"]), (&json!(":no"), &json!("fail")));
    assert_eq!(answer(json!({"program": "1"})).get("signal"), None);
}

#[test]
fn data_are_json() {
    let data = json!({"orders": [{"id": 1, "total cost": 2}, {"id": 2}], "n": 1.5, "none": null});
    let program = "[(map :id data/orders) (get (first data/orders) \"total cost\") data/n data/none]";
    assert_eq!(answer(json!({"program": program, "data": data}))["value"], "[(1 2) 2 1.5 nil]");
    let missing = answer(json!({"program": "data/other", "data": data}));
    assert!(missing["error"]["message"].as_str().unwrap().contains("no data item `other`"), "{missing}");
    let wrong = answer(json!({"program": "1", "data": [1]}));
    assert_eq!(wrong["error"]["message"], "data is a JSON object");
}

#[test]
fn memory_goes_in_and_comes_out() {
    let case = json!({"program": "(def total (+ user/total 5)) (def seen [:a]) total", "memory": "{:total 10 :kept \"k\"}"});
    let answer = answer(case);
    assert_eq!(answer["value"], "15");
    assert_eq!(answer["memory"], "{:kept \"k\", :seen [:a], :total 15}");
}

#[test]
fn a_program_that_fails_leaves_the_memory_as_it_was() {
    let answer = answer(json!({"program": "(def total 0) (/ 1 total)", "memory": "{:total 10}"}));
    assert_eq!(answer["error"]["kind"], "arithmetic_error");
    assert_eq!(answer["memory"], "{:total 10}");
}

#[test]
fn a_program_that_does_not_compile_leaves_the_memory_too() {
    let answer = answer(json!({"program": "(def total (nope 1))", "memory": "{:total 10}"}));
    assert_eq!(answer["error"]["kind"], "unbound_var");
    assert_eq!(answer["memory"], "{:total 10}");
}

#[test]
fn memory_must_be_a_map_of_names() {
    for (memory, message) in [
        ("[1 2]", "memory is the text of a map"),
        ("{1 2}", "the names in memory are keywords, symbols or strings"),
    ] {
        assert_eq!(answer(json!({"program": "1", "memory": memory}))["error"]["message"], message);
    }
    let answer = answer(json!({"program": "1", "memory": "{:a"}));
    assert_eq!(answer["error"]["kind"], "incomplete_form");
}

#[test]
fn turn_history_is_oldest_first() {
    let case = json!({"program": "[*1 *2 *3]", "turn_history": "[:oldest {:a 1} 3]"});
    assert_eq!(answer(case)["value"], "[3 {:a 1} :oldest]");
    assert_eq!(answer(json!({"program": "[*1 *2]", "turn_history": "[7]"}))["value"], "[7 nil]");
    let wrong = answer(json!({"program": "1", "turn_history": "{}"}));
    assert_eq!(wrong["error"]["message"], "turn_history is the text of a vector");
}

#[test]
fn each_limit_can_be_set() {
    let cases = [
        ("fuel", 100, "(loop [] (recur))", "fuel_exceeded"),
        ("stack_depth", 50, "((fn f [n] (inc (f n))) 1)", "stack_exceeded"),
        ("nesting_depth", 5, "(reduce (fn [v _] [v]) [] (range 9))", "nesting_exceeded"),
        ("collection_size", 10, "(vec (range 11))", "size_exceeded"),
        ("string_bytes", 10, "(apply str (repeat 11 \"a\"))", "size_exceeded"),
        ("number_bits", 70, "(*' 9223372036854775807 9223372036854775807)", "number_size_exceeded"),
        ("memory_bytes", 100_000, "(vec (range 100000))", "memory_exceeded"),
    ];
    let lines: Vec<String> = cases
        .iter()
        .map(|(limit, value, program, _)| {
            json!({"id": limit, "program": program, "limits": {*limit: value}}).to_string()
        })
        .collect();
    for ((limit, _, _, kind), answer) in cases.iter().zip(answers(&lines)) {
        assert_eq!(answer["error"]["kind"], *kind, "{limit}: {answer}");
        assert_eq!(answer["id"], *limit);
    }
}

#[test]
fn prints_are_cut_at_their_limit() {
    let case = json!({"program": "(println \"abcdefgh\")", "limits": {"print_characters_per_call": 3}});
    assert_eq!(answer(case)["prints"], json!(["abc..."]));
}

#[test]
fn a_limit_that_is_unknown_or_no_number_is_an_error() {
    let unknown = answer(json!({"program": "1", "limits": {"time": 5}}));
    assert_eq!(unknown["error"]["message"], "there is no limit time");
    let negative = answer(json!({"program": "1", "limits": {"fuel": -1}}));
    assert_eq!(negative["error"]["message"], "the limit fuel is a whole number");
}

#[test]
fn a_malformed_line_does_not_stop_the_rest() {
    let lines = ["{oops", "", r#"{"id": 1}"#, r#"{"id": 2, "program": "(+ 1 1)"}"#].map(str::to_owned);
    let answers = answers(&lines);
    assert_eq!(answers.len(), 3);
    for answer in &answers[..2] {
        assert_eq!((&answer["id"], &answer["error"]["kind"]), (&Json::Null, &json!("invalid_line")));
        assert_eq!(answer["prints"], json!([]));
    }
    assert_eq!((&answers[2]["id"], &answers[2]["value"]), (&json!(2), &json!("2")));
}

#[test]
fn programs_do_not_see_one_another() {
    let lines = [json!({"program": "(def x 1)"}), json!({"program": "x"})].map(|case| case.to_string());
    let answers = answers(&lines);
    assert_eq!(answers[0]["memory"], "{:x 1}");
    assert_eq!(answers[1]["error"]["kind"], "unbound_var");
}

#[test]
fn nothing_in_nothing_out() {
    assert_eq!(answers(&[]), Vec::<Json>::new());
}

#[test]
fn a_value_that_unfolds_without_end_is_an_error() {
    let tower = "(reduce (fn [x _] [x x]) 1 (range 60))";
    let value = answer(json!({"program": tower}));
    assert_eq!(value["error"]["kind"], "size_exceeded", "{value}");
    let memory = answer(json!({"program": format!("(def t {tower}) 1")}));
    assert_eq!(memory["error"]["kind"], "size_exceeded", "{memory}");
}
