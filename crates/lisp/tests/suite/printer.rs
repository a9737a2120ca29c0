//! Values as text: in full, and as samples.

use backstitch_lisp::{Limits, Truncation, Value, read_edn, to_clojure, to_edn};
use proptest::prelude::*;

use crate::generate::value;
use crate::support::gives;

fn read(text: &str) -> Value {
    read_edn(text, &Limits::default()).unwrap_or_else(|error| panic!("{text}\n{error}"))
}

#[track_caller]
fn sample(text: &str, limit: usize, printable_limit: usize, expected: &str) {
    assert_eq!(to_clojure(&read(text), limit, printable_limit), expected);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn what_is_printed_in_full_reads_back(value in value()) {
        let text = to_edn(&value);
        let read = read_edn(&text, &Limits::default());
        prop_assert_eq!(read.as_ref(), Ok(&value), "{}", text);
        let again = to_clojure(&value, usize::MAX, usize::MAX);
        let read = read_edn(&again, &Limits::default());
        // A very large value is still cut, because samples are bounded.
        if again.len() < 10_000 {
            prop_assert_eq!(read.as_ref(), Ok(&value), "{}", again);
        }
    }

    #[test]
    fn a_sample_is_short(value in value()) {
        let text = to_clojure(&value, 3, 80);
        prop_assert!(text.chars().count() < 20_000, "{}", text);
    }
}

#[test]
fn scalars_in_full() {
    for text in [
        "nil",
        "true",
        "false",
        "42",
        "-7",
        "5N",
        "1/3",
        "1.5",
        "-0.0",
        "1.0E10",
        "1.0E-5",
        "0.001",
        "9999999.0",
        "1.0E7",
        "##Inf",
        "##-Inf",
        "##NaN",
        "\\a",
        "\\newline",
        "\\space",
        "\\λ",
        "\"a\\n\\t\\\"\\\\λ\"",
        ":a",
        ":a/b",
        "sym",
        "#\"a\\d\"",
        "#inst \"2026-01-02T03:04:05.000-00:00\"",
        "#time/date \"2026-01-02\"",
        "#time/duration \"PT1H30M\"",
        "100000000000000000000N",
        "4.9E-324",
        "1.7976931348623157E308",
    ] {
        assert_eq!(to_edn(&read(text)), text);
    }
}

#[test]
fn collections_in_full_as_clojure_prints_them() {
    assert_eq!(to_edn(&read("{:b [1 2] :a (1 \"x\")}")), "{:a (1 \"x\"), :b [1 2]}");
    assert_eq!(to_edn(&read("#{3 1 2}")), "#{1 2 3}");
    assert_eq!(to_edn(&read("[() [] {} #{}]")), "[() [] {} #{}]");
}

#[test]
fn a_pattern_with_a_quote_reads_back() {
    let value = read("#\"a\\\"b\"");
    assert_eq!(to_edn(&value), "#\"a\\\"b\"");
}

#[test]
fn samples_of_collections() {
    sample("[1 2 3 4 5]", 3, 80, "[1 2 3 ...] (5 items, showing first 3)");
    sample("[1 2 3]", 3, 80, "[1 2 3]");
    sample("(1 2 3 4)", 3, 80, "(1 2 3 ...) (4 items, showing first 3)");
    sample("#{1 2 3 4}", 3, 80, "#{1 2 3 ...} (4 items, showing first 3)");
    sample("{:a 1 :b 2 :c 3 :d 4}", 3, 80, "{:a 1 :b 2 :c 3 ...} (4 items, showing first 3)");
    sample("{:a 1 :b 2}", 3, 80, "{:a 1 :b 2}");
    sample("[[1 2 3 4] [5]]", 3, 80, "[[1 2 3 ...] (4 items, showing first 3) [5]]");
    sample("[1 2]", 0, 80, "[...] (2 items, showing first 0)");
    sample("[]", 0, 80, "[]");
    sample("{}", 3, 80, "{}");
}

#[test]
fn samples_of_strings_count_characters() {
    let long = "x".repeat(100);
    sample(&format!("{long:?}"), 3, 80, &format!("\"{}...\"", "x".repeat(80)));
    sample("\"éééééééééé\"", 3, 10, "\"éééééééééé\"");
    sample("\"ééééééééééé\"", 3, 10, "\"éééééééééé...\"");
    sample("\"😀😀😀\"", 3, 2, "\"😀😀...\"");
    sample("\"a\\nb\"", 3, 2, "\"a\\n...\"");
    sample("\"\"", 3, 0, "\"\"");
}

#[test]
fn strings_in_a_map_share_the_characters() {
    let text = "t".repeat(100);
    sample(&format!("{{:title {text:?}}}"), 3, 60, &format!("{{:title \"{}...\"}}", "t".repeat(50)));
    sample(
        &format!("{{:a {text:?} :b {text:?}}}"),
        3,
        60,
        &format!("{{:a \"{0}...\" :b \"{0}...\"}}", "t".repeat(20)),
    );
}

#[test]
fn long_scalars_are_cut() {
    sample(&"9".repeat(100), 3, 10, "9999999999...");
    sample(&format!(":{}", "k".repeat(100)), 3, 10, ":kkkkkkkkk...");
}

#[test]
fn the_limits_of_the_specification() {
    assert_eq!((Truncation::SAMPLE.items, Truncation::SAMPLE.characters), (3, 80));
    assert_eq!((Truncation::ARGUMENTS.items, Truncation::ARGUMENTS.characters), (3, 60));
}

#[test]
fn a_sample_of_what_holds_itself_many_times_is_bounded() {
    // Three to the power of a hundred numbers, in a hundred vectors.
    let mut value = Value::Integer(1);
    for _ in 0..100 {
        value = Value::vector(vec![value.clone(), value.clone(), value]);
    }
    let text = to_clojure(&value, 3, 80);
    assert!(text.len() < 20_000, "{}", text.len());
}

#[test]
fn a_sample_looks_at_nothing_it_does_not_show() {
    let large = Value::vector((0..1_000_000).map(Value::Integer).collect());
    assert_eq!(to_clojure(&large, 3, 80), "[0 1 2 ...] (1000000 items, showing first 3)");
}

#[test]
fn functions_show_their_parameters() {
    gives(
        "[(str (fn [x y] x)) (str (fn ([] 1) ([x & more] x))) (str inc) (pr-str #(+ % %2))]",
        "[\"#fn[x y]\" \"#fn[ | x & more]\" \"#fn[inc]\" \"#fn[%1 %2]\"]",
    );
}

#[test]
fn hidden_entries_are_left_out_of_samples_where_that_is_asked_for() {
    let visible = |source: &str| {
        let value = crate::support::run(source).unwrap();
        backstitch_lisp::to_clojure_without_hidden(&value, backstitch_lisp::Truncation::SAMPLE)
    };
    assert_eq!(visible("{:a 1 :_b 2 \"_c\" 3 :d 4}"), "{:a 1 :d 4}");
    assert_eq!(visible("[{:_token \"x\"} {:n {:_deep 1}}]"), "[{} {:n {}}]");
    assert_eq!(visible("{:a 1 :b 2 :c 3 :d 4 :_e 5}"), "{:a 1 :b 2 :c 3 ...} (4 items, showing first 3)");
    assert_eq!(visible("[:_a \"_b\"]"), "[:_a \"_b\"]");
}
