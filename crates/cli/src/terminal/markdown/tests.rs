//! Tests of rendered Markdown.

use proptest::prelude::*;

use super::super::layout::width;
use super::super::style::tests::{foreign, has_no_controls, without_colors};
use super::super::style::{Role, Text};
use super::*;

/// Renders a text in pieces of so many characters.
fn rendered(look: Look, columns: usize, text: &str, piece: usize) -> String {
    let mut stream = MarkdownStream::new(look, columns);
    let characters: Vec<char> = text.chars().collect();
    let mut all = String::new();
    for piece in characters.chunks(piece.max(1)) {
        all.push_str(&stream.push(&piece.iter().collect::<String>()));
    }
    all + &stream.flush()
}

fn shown(text: &str, columns: usize) -> String {
    let whole = without_colors(&rendered(Look::Colors, columns, text, usize::MAX));
    for piece in [1, 3, 7] {
        assert_eq!(without_colors(&rendered(Look::Colors, columns, text, piece)), whole, "pieces of {piece}");
    }
    whole
}

#[test]
fn marks_are_left_out_and_the_rest_stays() {
    assert_eq!(
        shown("# A hem\n\nSew **it** now, *all* of it, with `needle 7`.\n", 80),
        "A hem\n\nSew it now, all of it, with needle 7.\n"
    );
    assert_eq!(
        shown("```rust\nlet a = 2 ** 8; // `x` **y**\n# no heading\n```\nend", 80),
        "```rust\nlet a = 2 ** 8; // `x` **y**\n# no heading\n```\nend\n"
    );
    let bold = Text::new().add(Role::Emphasis, "it").rendered(true);
    assert!(rendered(Look::Colors, 80, "a **it** b", 3).contains(&bold));
    assert_eq!(
        rendered(Look::Marks, 80, "## A\n\n**b** *c* `d`\n", 3),
        "## A\n\n**b** *c* `d`\n",
        "without colours"
    );
    assert_eq!(
        rendered(Look::Words, 80, "## A\n\n**b** `d`\n\n```sh\nls\n```\n", 3),
        "Heading 2: A\n\nb `d`\n\nCode, sh:\nls\nEnd of code.\n"
    );
}

#[test]
fn what_is_no_mark_is_printed_as_it_is() {
    for text in [
        "2 ** 8 and 2**8 ** 9",
        "a * b * c",
        "**open",
        "`open",
        "``",
        "#tag",
        "####### seven",
        "**a **b",
        "a ** b",
        "snake_case and __init",
        "** `",
        "a < b and c > d",
        "1.5 m",
        "x[1] = y[2]",
        "~/.ssh and ~/.aws",
        "a | b",
        "[a]: b",
        "==",
        "a *b\n--",
        ":[[ b]:c]",
        "{\"a\": [1, 2]}",
        "C:\\new\\table",
    ] {
        assert_eq!(shown(text, 80), format!("{text}\n"), "{text}");
    }
}

#[test]
fn lines_are_broken_at_words_and_items_hang() {
    assert_eq!(shown("one two three\nfour", 8), "one two\nthree\nfour\n");
    assert_eq!(
        shown("- one two three\n- four\n  - **five**: six seven\n\n10. ten ten ten\n", 13),
        "- one two\n  three\n- four\n  - five: six\n    seven\n\n10. ten ten\n    ten\n"
    );
    assert_eq!(shown("1. a\n1. b\n\n1. c\n\nd\n\n1. e", 80), "1. a\n2. b\n\n3. c\n\nd\n\n1. e\n");
    assert_eq!(shown("- a\n\n  b\n- [x] c\n", 80), "- a\n\n  b\n- [x] c\n");
    assert_eq!(shown("> a\n> ==", 11), "│ a\n│ ==\n");
    assert_eq!(shown("> one two three\n> - four\n", 11), "│ one two\n│ three\n│ - four\n");
    assert_eq!(shown("- a\n  ```sh\n  ls\n  ```\n- b", 80), "- a\n  ```sh\n  ls\n  ```\n- b\n");
    let address = "https://example.org/a/very/long/path";
    assert_eq!(shown(&format!("see {address} now"), 20), format!("see\n{address}\nnow\n"));
    assert_eq!(shown("a [link](https://example.org) b", 80), "a link (https://example.org) b\n");
    assert_eq!(shown("*\nafter", 80), "-\nafter\n");
    assert_eq!(shown("a `code of two\nlines `  b", 20), "a code of two lines\nb\n");
    assert_eq!(shown("a <https://example.org> b", 80), "a https://example.org b\n");
    assert_eq!(shown("a\n\n---\n\nb", 20), format!("a\n\n{}\n\nb\n", "─".repeat(20)));
}

#[test]
fn tables_are_laid_out_for_their_width() {
    let table = "| name | stock | note |\n|---|--:|---|\n| needles | 7 | **bent** ones too |\n| pins | 120 | |\n\nend";
    assert_eq!(
        shown(table, 80),
        "name     stock  note\n───────  ─────  ─────────────\nneedles      7  bent ones too\npins       120\n\nend\n"
    );
    assert_eq!(
        shown(table, 26),
        "name     stock  note\n───────  ─────  ──────────\nneedles      7  bent ones\n                too\npins       120\n\nend\n"
    );
    assert_eq!(
        shown(table, 12),
        "name:\n  needles\nstock: 7\nnote: bent\n  ones too\n\nname: pins\nstock: 120\n\nend\n"
    );
    assert!(
        rendered(Look::Words, 80, table, 5).starts_with("name: needles\nstock: 7\nnote: bent ones too\n")
    );
}

#[test]
fn streaming_prints_what_is_certain() {
    let mut stream = MarkdownStream::new(Look::Colors, 80);
    let mut push = |text: &str| without_colors(&stream.push(text));
    assert_eq!(push("Sew"), "");
    assert_eq!(push(" **the"), "Sew");
    assert_eq!(push(" hem** now"), " the hem");
    assert_eq!(push(" `x"), " now");
    assert_eq!(push("y\n\n"), " `xy\n");
    assert_eq!(push("| a |"), "");
    assert_eq!(push("\n|---|\n| b |\n"), "");
    assert_eq!(push("\nend "), "\na\n─\nb\n\nend");
    assert_eq!(stream.flush(), "\n");
}

#[test]
fn long_lines_and_large_blocks_are_rendered_in_parts() {
    let words = "word and *other* word, ".repeat(60);
    let shown = shown(&format!("- {words}\n\n{words}"), 60);
    let flat = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    let expected = words.replace('*', "");
    assert_eq!(flat, format!("- {} {}", expected.trim(), expected.trim()));
    assert!(shown.lines().all(|line| width(line) <= 60), "{shown}");
    let long = "x".repeat(4_500);
    assert_eq!(super::tests::shown(&format!("a {long} b"), 60).replace('\n', ""), format!("a{long}b"));
    let code = format!("```\n{long}\n```\n");
    assert_eq!(super::tests::shown(&code, 60), code);
}

proptest! {
    #[test]
    fn pieces_do_not_matter_and_no_letter_is_lost(
        text in "[abcä漢#`*_ \n>1.\\-\\[\\]()<|:]{0,60}", piece in 1_usize..9, columns in 10_usize..50,
    ) {
        for look in [Look::Colors, Look::Marks, Look::Words] {
            let whole = rendered(look, columns, &text, usize::MAX);
            prop_assert_eq!(without_colors(&rendered(look, columns, &text, piece)), without_colors(&whole));
        }
    }

    // Without links: an address that is the text of its link is shown once.
    #[test]
    fn no_letter_is_lost(text in "[abcä漢#`*_ \n>1.\\-\\[\\]<:]{0,60}", columns in 10_usize..50) {
        let kept = |text: &str| text.chars().filter(|one| one.is_alphabetic()).collect::<String>();
        let whole = rendered(Look::Colors, columns, &text, usize::MAX);
        prop_assert_eq!(kept(&without_colors(&whole)), kept(&text));
    }

    #[test]
    fn prose_fits(words in prop::collection::vec("[a-zä漢]{1,9}[ *_]{1,2}", 0..40), columns in 20_usize..60, piece in 1_usize..9) {
        let text = words.concat();
        for line in without_colors(&rendered(Look::Colors, columns, &text, piece)).lines() {
            prop_assert!(width(line) <= columns || !line.contains(' '), "{line:?}");
        }
    }

    #[test]
    fn nothing_steers_the_terminal(text in foreign(), piece in 1_usize..9) {
        let shown = rendered(Look::Colors, 40, &text, piece).replace('\n', "");
        prop_assert!(has_no_controls(&without_colors(&shown)), "{:?}", shown);
    }
}
