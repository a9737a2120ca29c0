//! Finding programs in answers.

use backstitch_repl::{NoProgram, extract};
use proptest::prelude::*;

#[test]
fn a_program_is_found_whatever_stands_around_it() {
    for (answer, program) in [
        ("```clojure\n(return 1)\n```", "(return 1)"),
        ("Let me look.\n\n```clojure\n(def x 1)\n(return x)\n```\nThat is all.", "(def x 1)\n(return x)"),
        ("```clj\n(a)\n```\nthen\n```Lisp\n(b)\n```", "(a)\n(b)"),
        ("```\n(return 1)\n```", "(return 1)"),
        ("```text\n; first\n(return 1)\n```", "; first\n(return 1)"),
        ("```json\n{\"a\": 1}\n```\n```clojure\n(b)\n```", "(b)"),
        ("```clojure\n(return \"never closed", "(return \"never closed"),
        ("~~~clojure\n(a)\n~~~", "(a)"),
        ("````clojure\n(str \"\n```\n\")\n````", "(str \"\n```\n\")"),
        ("  ```clojure\n  (a)\n  ```", "  (a)"),
        ("> ```clojure\n(a)\n```", "(a)"),
        (
            "> Look:\n> ```clojure\n> (let [a 1\n>       b 2]\n>   (+ a b))\n> ```\n> So.",
            " (let [a 1\n       b 2]\n   (+ a b))",
        ),
        ("```clojure\n(def a 1)\n(return a)```\nThat is all.", "(def a 1)\n(return a)"),
        ("```clojure\n(return \"a ``` b\")\n```", "(return \"a ``` b\")"),
        ("Here:\n```clojure (return 1)```\nDone.", "(return 1)"),
        ("```(return 1)```", "(return 1)"),
        ("```clojure\n(return 1)\n```\nwhich gives\n```edn\n{:broken}\n```", "(return 1)"),
        ("```edn\n(return 1)\n```", "(return 1)"),
        ("(Math/round 4.6)", "(Math/round 4.6)"),
        ("(return 1)", "(return 1)"),
        ("  (def x 1)\n\n(return x) ", "(def x 1)\n\n(return x)"),
        ("; why\n(return 1)", "; why\n(return 1)"),
        ("Here it is:\n(return (+ 1 2))\nDone.", "(return (+ 1 2))"),
        ("Here it is:\n(def a 1)\n(return a)\nIt works (I think).", "(def a 1)\n(return a)"),
        ("I will (perhaps) do this:\n  (return 1)", "(return 1)"),
        ("(return (+ 1 2)", "(return (+ 1 2)"),
        ("So:\n(def x [1 2\n", "(def x [1 2"),
        ("```clojure\n```\n(return 2)", "(return 2)"),
        ("```json\n(return 1)\n```\nand\n(return 2)", "(return 1)"),
        ("`(return 7)`", "(return 7)"),
        ("The program:\n\n`(return 7)`\n", "(return 7)"),
        ("Answer: `(return 7)`.", "(return 7)"),
        ("user=> (return 7)", "(return 7)"),
        ("```clojure\nuser=> (def x 1)\nuser=> (return x)\n```", "(def x 1)\n(return x)"),
        ("=> (return 7)", "(return 7)"),
        ("```clojure\n(fail \\\"no rows\\\")\n```", "(fail \"no rows\")"),
        ("(println \\\"a\\\")\\n(return 1)", "(println \"a\")\n(return 1)"),
        ("```clojure\n(println \"say \\\"hi\\\"\")\n```", "(println \"say \\\"hi\\\"\")"),
        ("**Program**\n\n1. look\n\n```clojure\n(a)\n```", "(a)"),
        ("<answer>\n```clojure\n(a)\n```\n</answer>", "(a)"),
        ("```Clojure\n(a)\n```", "(a)"),
        ("``` clojure\n(a)\n```", "(a)"),
        ("```clojure title=\"a.clj\"\n(a)\n```", "(a)"),
        ("```lisp\n(a)\n```", "(a)"),
        ("```clojure\r\n(a)\r\n```", "(a)"),
    ] {
        assert_eq!(extract(answer).as_deref(), Ok(program), "{answer}");
    }
}

#[test]
fn words_alone_are_no_program() {
    for answer in [
        "I am done.",
        "The answer (as far as I know) is 42.",
        "(Well, that is hard.)",
        "```json\n{\"a\": 1}\n```",
        "```\nplain text\n```",
        "42",
        "Use `(return x)` to finish.",
        "Use ```(return x)``` to finish.",
        "(Well/maybe.",
    ] {
        assert_eq!(extract(answer), Err(NoProgram::None), "{answer}");
    }
    assert_eq!(extract(" \n\t"), Err(NoProgram::Empty));
    assert_eq!(extract(&"x".repeat(5 << 20)), Err(NoProgram::TooLong));
}

#[test]
fn drafts_in_thoughts_are_no_programs() {
    for (answer, program) in [
        ("<think>\n```clojure\n(fail \"draft\")\n```\n</think>\n```clojure\n(return 7)\n```", "(return 7)"),
        ("<think>(fail 1)</think>(return 7)", "(return 7)"),
        ("<Thinking>\n(fail 1)\n</Thinking>\n(return 7)", "(return 7)"),
        ("<reasoning>a < b\n(fail 1)</reasoning>\n\n```\n(return 7)\n```", "(return 7)"),
        // The opening mark was in the prompt.
        ("I try (fail 1).\n```clojure\n(fail 2)\n```\n</think>\n\n```clojure\n(return 7)\n```", "(return 7)"),
        ("```clojure\n(return 7)\n```\n<think>\n```clojure\n(fail 1)\n```", "(return 7)"),
        (
            "<think>one</think>\n```clojure\n(def a 1)\n```\n<think>(b)</think>\n```clojure\n(return a)\n```",
            "(def a 1)\n(return a)",
        ),
        // Marks in the program itself are text.
        ("```clojure\n(return \"<think>\")\n```", "(return \"<think>\")"),
        ("```clojure\n(println \"</think>\" 1)\n(return 7)\n```", "(println \"</think>\" 1)\n(return 7)"),
        ("(return \"<think>\")", "(return \"<think>\")"),
    ] {
        assert_eq!(extract(answer).as_deref(), Ok(program), "{answer}");
    }
    for answer in ["<think>\n```clojure\n(fail 1)\n```", "<think>(return 1)</think>", "<think>(return 1)"] {
        assert_eq!(extract(answer), Err(NoProgram::None), "{answer}");
    }
}

#[test]
fn hostile_answers_cost_little() {
    for answer in [
        "(".repeat(1 << 20),
        "```\n".repeat(200_000),
        "(a\n".repeat(200_000),
        "`".repeat(1 << 20),
        "<think>".repeat(200_000),
        "</think>\n".repeat(200_000),
        "`(\n".repeat(200_000),
    ] {
        let _ = extract(&answer);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn nothing_makes_it_fail(answer in "([`~]{3}[a-z]{0,8}\n|[()\\[\\]{}\"\\\\;#' a-zé\n]|\\(return 1\\)){0,80}") {
        if let Ok(program) = extract(&answer) {
            prop_assert!(!program.trim().is_empty());
        }
    }

    #[test]
    fn thoughts_never_change_the_program(
        mark in "think|thinking|reasoning|THINK",
        thought in "([`~]{3}(clojure)?\n|\\((return|fail) [0-9]\\)|[a-z <>\"\n]){0,20}",
        closed in any::<bool>(),
    ) {
        prop_assume!(!thought.contains("</"));
        let program = "```clojure\n(return {:a 1})\n```\n";
        let answer = format!("{program}<{mark}>{thought}{}", if closed { format!("</{mark}>") } else { String::new() });
        prop_assert_eq!(extract(&answer).unwrap(), "(return {:a 1})");
        let before = format!("<{mark}>{thought}</{mark}>\n{program}");
        prop_assert_eq!(extract(&before).unwrap(), "(return {:a 1})");
    }

    #[test]
    fn a_fenced_program_is_found_among_any_words(before in "[ a-zA-Z.,!\n]{0,60}", after in "[ a-zA-Z.,!\n]{0,60}") {
        let answer = format!("{before}\n```clojure\n(return {{:a [1 2]}})\n```\n{after}");
        prop_assert_eq!(extract(&answer).unwrap(), "(return {:a [1 2]})");
    }
}
