//! Repair of text as models write it.

use std::borrow::Cow;

use backstitch_lisp::{ReadLimits, read_all, repair};

#[track_caller]
fn mended(text: &str, expected: &str) {
    assert_eq!(repair(text), expected);
    assert_eq!(repair(expected), expected, "mending twice changes nothing");
}

#[test]
fn good_text_is_left_alone() {
    for text in ["", "(+ 1 2)", "(def x \"λ\")", "'a", "; c\n1"] {
        assert!(matches!(repair(text), Cow::Borrowed(same) if same == text), "{text}");
    }
}

#[test]
fn byte_order_marks_and_invisible_characters_go() {
    mended("\u{feff}(+ 1 2)", "(+ 1 2)");
    mended("(a\u{200b}b \u{200d}c\u{2060})", "(ab c)");
    mended("\"a\u{200d}b\"", "\"a\u{200d}b\"");
}

#[test]
fn spaces_of_other_kinds_are_spaces() {
    mended("(+\u{a0}1\u{202f}2\u{3000})", "(+ 1 2 )");
    mended("\"a\u{a0}b\"", "\"a\u{a0}b\"");
    mended("(a)\u{2028}(b)", "(a)\n(b)");
}

#[test]
fn line_ends_are_newlines() {
    mended("(a)\r\n(b \"c\r\nd\")\r\n", "(a)\n(b \"c\nd\")\n");
}

#[test]
fn curly_quotes_delimit_strings() {
    mended("(str “hello” ‘x)", "(str \"hello\" 'x)");
    mended("(str “hello\" 1)", "(str \"hello\" 1)");
    mended("(str „hello“)", "(str \"hello\")");
    mended("(str “a \\“b\\” c”)", "(str \"a \\\"b\\\" c\")");
}

#[test]
fn curly_quotes_inside_of_a_string_are_content() {
    mended("(str \"he said “hi”, it’s fine\")", "(str \"he said “hi”, it’s fine\")");
}

#[test]
fn characters_and_comments_do_not_open_strings() {
    mended("[\\\" “a”]", "[\\\" \"a\"]");
    mended("; it’s “fine\n“a”", "; it’s “fine\n\"a\"");
    mended("\\“ “a”", "\\“ \"a\"");
}

#[test]
fn fences_are_taken_off() {
    mended("```clojure\n(+ 1 2)\n```", "(+ 1 2)\n");
    mended("Here it is:\n\n```clojure\n(+ 1 2)\n```\nIt adds.", "(+ 1 2)\n");
    mended("~~~~lisp\n(a)\n~~~~", "(a)\n");
    mended("```\n(a)\n```", "(a)\n");
    mended("```clj\n(a)", "(a)");
    mended("```clj\r\n(a)\r\n```\r\n", "(a)\n");
    mended("## Plan\n```clojure\n(a)\n```", "(a)\n");
}

#[test]
fn several_blocks_are_one_program_and_other_languages_are_left_out() {
    mended("First\n```clojure\n(def a 1)\n```\nthen\n```clojure\n(inc a)\n```", "(def a 1)\n\n(inc a)\n");
    mended("```json\n{}\n```\n```clojure\n(a)\n```", "(a)\n");
    mended("```text\nno\n```\n```\n(b)\n```", "no\n\n(b)\n");
}

#[test]
fn a_program_may_hold_fences_in_strings() {
    let program = "(println \"\n```clojure\n(a)\n```\n\")";
    mended(program, program);
}

#[test]
fn a_program_with_stray_fences() {
    mended("(+ 1 2)\n```", "(+ 1 2)\n");
    mended("(+ 1 2)\n```\n", "(+ 1 2)\n");
    mended("(As asked:)\n```clojure\n(+ 1 2)\n```", "(+ 1 2)\n");
}

#[test]
fn inline_backquotes_are_no_fence() {
    mended("use ```(a)``` here", "use ```(a)``` here");
}

#[test]
fn mended_text_reads() {
    let text = "\u{feff}Sure!\r\n```clojure\r\n(def\u{a0}x “a”)\r\n(str x ‘y)\r\n```\r\n";
    assert_eq!(read_all(&repair(text), &ReadLimits::default()).map(|forms| forms.len()), Ok(2));
}
