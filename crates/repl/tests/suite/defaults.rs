//! What a model is shown by default: no turn vanishes, every field has its name, and an error that was
//! recovered from is not the last word.

use backstitch_repl::compression::{
    Compression, DisplayOptions, FullOptions, NoCompression, RenderContext, SingleUserCoalesced, Trim,
};
use proptest::prelude::*;
use serde_json::json;

use crate::support::{Agent, bare, map, only, spoken};

/// The texts of the request after these programs.
fn shown(programs: &[&str]) -> String {
    let strategy = SingleUserCoalesced::default();
    let agent = Agent::sampled(programs, strategy.sample());
    let rendered = strategy.render(&agent.history(), &bare());
    let texts: Vec<&str> = spoken(&rendered).into_iter().map(|(_, text)| text).collect();
    texts.join("\n----\n")
}

#[test]
fn a_program_that_only_computes_shows_its_value() {
    let after = shown(&["(this is not a program", "(+ 1 1)"]);
    assert!(after.ends_with(";; Turn 2 ran without an error. Its value (*1): 2"), "{after}");
    assert!(!after.contains("not a program"), "a solved error is gone: {after}");
}

#[test]
fn the_value_of_a_call_of_an_earlier_function_is_shown() {
    let define = "(defn twice [x] (* 2 x))";
    for calls in [&["(twice 4)"][..], &["(twice 2)", "(twice 4)"], &["(twice 2.5)", "(twice 4)"]] {
        let programs: Vec<&str> = std::iter::once(define).chain(calls.iter().copied()).collect();
        let after = shown(&programs);
        assert!(after.ends_with("Its value (*1): 8"), "{programs:?}: {after}");
    }
}

#[test]
fn a_definition_or_a_print_is_not_shown_twice() {
    for program in ["(def x 1)", "(println 5)", "(def x 1) (println x) 7"] {
        let after = shown(&[program]);
        assert!(after.ends_with(";; Turn 1 ran without an error."), "{after}");
    }
}

#[test]
fn prints_are_under_the_number_of_their_turn() {
    let mut programs =
        vec!["(println 12) (println 13)", "(def x 1)", "(println \";; Output of turn 9:\")", "(nope)"];
    let after = shown(&programs);
    let expected =
        "\n\n;; Output of turn 1:\n12\n13\n;; Output of turn 3:\n~~~\n;; Output of turn 9:\n~~~\n----\n";
    assert!(after.contains(expected), "{after}");
    // Old prints stay, with the number of their turn, until later ones replace them.
    programs.resize(10, "(def x 1)");
    assert!(shown(&programs).contains(";; Output of turn 1:\n12\n13\n;; Output of turn 3:\n"));
    programs.push("(dotimes [n 14] (println \"n\" n))");
    let after = shown(&programs);
    let expected = "\n\n;; (2 earlier prints not shown)\n;; Output of turn 3:\n~~~\n;; Output of turn 9:\n~~~\n;; Output of turn 11:\nn 0\nn 1\n";
    assert!(after.contains(expected), "{after}");
}

#[test]
fn an_error_names_its_turn_until_it_is_recovered_from() {
    let after = shown(&["(def a 1)", "(nope)"]);
    assert!(after.contains("----\nError in turn 2: unbound_var"), "{after}");
    let all = NoCompression::new(FullOptions { display: DisplayOptions::default() });
    let rendered = all.render(&Agent::after(&["(nope)", "(def a 1)"]).history(), &bare());
    assert!(spoken(&rendered)[2].1.starts_with("Error in turn 1: "));
}

#[test]
fn all_fields_of_records_are_named() {
    let rows = "[{:total 5 :status :open :id 1 :customer \"Ada\"} {:id 2 :note \"late\"}]";
    let after = shown(&[&format!("(def rows {rows})")]);
    assert!(after.contains(
        "rows                          ; = list[2] of {:customer :id :note :status :total}, sample: ["
    ));
    let after = shown(&[&format!("(def found {{:rows {rows} :more false}})")]);
    assert!(
        after.contains("; = map[2] with {:more :rows [{:customer :id :note :status :total}]}, sample: {"),
        "{after}"
    );
    // The length stands behind the whole, and not behind each record.
    let after = shown(&["(def rows (repeat 5 {:a 1 :b 2 :c 3 :d 4}))"]);
    assert_eq!(after.matches("showing first").count(), 1, "{after}");
    assert!(after.contains("; = list[5] of {:a :b :c :d}, sample: ("), "{after}");
    // What is hidden stays hidden.
    assert!(!shown(&["(def rows [{:id 1 :_secret 2}])"]).contains("_secret"));
    let data = map(json!({"orders": [{"id": 1, "a": 2, "b": 3, "total": 4}], "_key": [{"pin": 1}]}));
    let strategy = SingleUserCoalesced::default();
    let scene = RenderContext::new("M").data(&data, strategy.sample());
    let rendered = strategy.render(&Agent::new().history(), &scene);
    let text = only(&rendered);
    assert!(
        text.contains("data/orders                   ; list[1] of {:a :b :id :total}, sample: "),
        "{text}"
    );
    assert!(!text.contains("pin"), "{text}");
}

#[test]
fn a_cut_result_names_its_fields() {
    let after = shown(&["(tool/search \"a\" 40)"]);
    assert!(after.contains("-> list[40] of {:id :title}, sample: ["), "{after}");
    assert!(after.contains("Its value (*1): list[40] of {:id :title}, sample: ["), "{after}");
}

/// Programs that do something, or nothing, or fail.
const PROGRAMS: &[&str] = &[
    "1",
    "nil",
    "(count [1 2])",
    "(def x 1)",
    "(def x 2)",
    "(println :a)",
    "(nope)",
    "(",
    "(tool/ping)",
    "(tool/search \"a\" 1)",
    "(do (println 1) (/ 1 0))",
    "\"text\"",
    "(defn f [x] x)",
    "(f 1)",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// A model that is shown the same again does the same again.
    #[test]
    fn two_requests_in_a_row_differ_in_more_than_the_counter(
        programs in proptest::collection::vec(proptest::sample::select(PROGRAMS), 1..6)
    ) {
        let strategies: [Box<dyn Compression>; 3] = [
            Box::new(SingleUserCoalesced::default()),
            Box::new(Trim::default()),
            Box::new(NoCompression::default()),
        ];
        for strategy in strategies {
            let request = |turns: usize| {
                let agent = Agent::sampled(&programs[..turns], strategy.sample());
                // Without a maximum there is no counter.
                let rendered = strategy.render(&agent.history(), &bare());
                spoken(&rendered).into_iter().map(|(_, text)| text.to_owned()).collect::<Vec<_>>()
            };
            for turns in 1..=programs.len() {
                prop_assert_ne!(request(turns - 1), request(turns), "{:?}", &programs[..turns]);
            }
        }
    }
}
