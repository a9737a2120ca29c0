//! `backstitch lisp repl`, fed by a pipe.

use crate::command::{Ran, TemporaryFile, backstitch_reading};

fn repl(input: &str) -> Ran {
    backstitch_reading(input, &["lisp", "repl"])
}

/// The lines after the greeting.
#[track_caller]
fn lines(input: &str) -> Vec<String> {
    let output = repl(input).worked();
    let mut lines = output.lines().map(str::to_owned);
    let greeting = lines.next().unwrap_or_default();
    assert!(greeting.starts_with("Backstitch"), "{output}");
    lines.collect()
}

#[test]
fn each_entry_is_evaluated_and_printed() {
    assert_eq!(lines("(+ 1 2)\n\n\"text\"\n[1 :a nil]\n"), ["3", "\"text\"", "[1 :a nil]"]);
}

#[test]
fn an_entry_may_span_lines() {
    assert_eq!(lines("(defn add\n  [a b]\n  (+ a\n     b))\n(add 1 2)\n"), ["#'add", "3"]);
    assert_eq!(lines("\"two\nlines\"\n"), ["\"two\\nlines\""]);
}

#[test]
fn definitions_persist() {
    assert_eq!(
        lines("(def x 1)\n(def x (inc x))\n(def a (atom 5))\n(swap! a + x)\n@a\n"),
        ["#'x", "#'x", "#'a", "7", "7"]
    );
}

#[test]
fn a_failed_entry_leaves_no_definitions() {
    let ran = repl("(def x 1)\n(do (def x 2) (def y 3) (/ 1 0))\nx\ny\n");
    assert_eq!(ran.code, Some(0));
    let shown: Vec<&str> = ran.output.lines().skip(1).collect();
    assert_eq!(shown, ["#'x", "1"]);
    assert!(ran.errors.contains("arithmetic_error: "), "{}", ran.errors);
    assert!(ran.errors.contains("unbound_var: `y` is not defined"), "{}", ran.errors);
}

#[test]
fn the_last_values_have_names() {
    assert_eq!(lines("10\n20\n30\n[*1 *2 *3]\n*1\n"), ["10", "20", "30", "[30 20 10]", "[30 20 10]"]);
}

#[test]
fn a_failed_entry_is_no_last_value() {
    let ran = repl("10\n(/ 1 0)\n*1\n");
    assert_eq!(ran.output.lines().skip(1).collect::<Vec<_>>(), ["10", "10"]);
}

#[test]
fn prints_come_before_the_value() {
    assert_eq!(lines("(do (println \"hello\") 5)\n"), ["hello", "5"]);
}

#[test]
fn doc_describes_names() {
    let shown = lines(
        "(defn area \"Width times height.\" [w h] (* w h))\n:doc area\n:doc count\n:doc nope\n(doc area)\n(doc str/join)\n:doc mapv*\n",
    );
    assert_eq!(shown[1..3], ["area: (area [w h])", "  Width times height."]);
    assert_eq!(shown[5..7], shown[1..3]);
    assert!(shown[7].starts_with("str/join: a function of the library"), "{shown:?}");
    assert_eq!(shown[8], "there is no \"mapv*\"; :names lists what there is");
    assert!(shown[3].starts_with("count: a function of the library"), "{shown:?}");
    assert_eq!(shown[4], "there is no \"nope\"; :names lists what there is");
}

#[test]
fn commands_list_names() {
    let shown = lines("(def b 1)\n(def a 2)\n:defs\n:names\n:help\n");
    assert_eq!(shown[2], "b a");
    assert!(shown[3].split(' ').any(|name| name == "reduce"), "{shown:?}");
    assert!(shown[4..].iter().any(|line| line.starts_with(":doc NAME")), "{shown:?}");
}

#[test]
fn quit_leaves() {
    assert_eq!(lines("1\n:quit\n2\n"), ["1"]);
    assert_eq!(lines("1\n:exit\n2\n"), ["1"]);
}

#[test]
fn other_keywords_are_values() {
    assert_eq!(lines(":a\n(:a {:a 1})\n"), [":a", "1"]);
}

#[test]
fn data_are_given() {
    let file = TemporaryFile::new("repl.json", "{\"a\": [1, 2]}");
    let data = format!("given={}", file.path());
    let ran = backstitch_reading("(:a data/given)\n", &["lisp", "repl", "--data", &data]);
    assert_eq!(ran.worked().lines().nth(1), Some("[1 2]"));
}

#[test]
fn an_error_shows_its_place() {
    let ran = repl("(+ 1 (foo))\n");
    assert!(ran.errors.contains("unbound_var: `foo` is not defined"), "{}", ran.errors);
    assert!(ran.errors.contains('^'), "{}", ran.errors);
}
