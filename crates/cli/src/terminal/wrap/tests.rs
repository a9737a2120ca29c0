//! Tests of broken lines.

use proptest::prelude::*;

use super::super::escape::safe;
use super::super::style::tests::{colored, foreign, has_no_controls};
use super::*;

fn visible(text: &str) -> String {
    text.chars().filter(|character| !character.is_whitespace()).collect()
}

#[test]
fn paragraphs_are_broken_between_words() {
    assert_eq!(wrapped("one two three", 8), ["one two", "three"]);
    assert_eq!(wrapped("  one two three", 9), ["  one two", "  three"]);
    assert_eq!(wrapped("one\n\ntwo", 9), ["one", "", "two"]);
    assert_eq!(wrapped("", 8), [""]);
    assert_eq!(wrapped("a  b", 8), ["a  b"]);
}

#[test]
fn a_long_word_has_a_line_of_its_own() {
    let address = "https://example.org/a/long/path";
    assert_eq!(wrapped(&format!("see {address} for more"), 12), ["see", address, "for more"]);
    assert_eq!(wrapped("abcdefghijkl", 8), ["abcdefghijkl"]);
}

#[test]
fn wide_characters_are_words_of_their_own() {
    assert_eq!(wrapped("漢字漢字漢", 8), ["漢字漢字", "漢"]);
    assert_eq!(wrapped("漢字漢字。漢", 8), ["漢字漢", "字。漢"]);
    assert_eq!(wrapped("abc「漢字」abc", 8), ["abc「漢", "字」abc"]);
}

#[test]
fn commands_stay_whole_and_columns_stay_columns() {
    assert_eq!(wrapped("try `git log` now", 12), ["try", "`git log`", "now"]);
    assert_eq!(wrapped("try `git log --all` now", 12), ["try", "`git log --all`", "now"]);
    assert_eq!(wrapped("/help  list the commands", 16), ["/help  list the", "       commands"]);
}

proptest! {
    #[test]
    fn lines_within_columns_always_fit(text in foreign(), columns in 8_usize..50) {
        let lines = wrapped_within(&text, columns);
        prop_assert!(lines.iter().all(|line| width(line) <= columns), "{:?}", lines);
        prop_assert_eq!(visible(&lines.concat()), visible(&safe(&text)));
    }

    #[test]
    fn lines_fit_or_have_one_word_and_control_nothing(text in foreign(), columns in 8_usize..50) {
        for line in wrapped(&text, columns) {
            let is_word = !line.trim_start().contains(is_gap) || line.contains('`');
            prop_assert!(width(&line) <= columns || is_word, "{line:?}");
            prop_assert!(has_no_controls(&line), "{line:?}");
        }
    }

    #[test]
    fn nothing_but_spaces_is_lost(text in foreign(), columns in 8_usize..50) {
        prop_assert_eq!(visible(&wrapped(&text, columns).concat()), visible(&safe(&text)));
    }

    #[test]
    fn spans_are_broken_like_their_text(text in colored(), columns in 8_usize..50) {
        let lines = wrapped_text(&text, columns);
        prop_assert_eq!(visible(&lines.iter().map(Text::text).collect::<String>()), visible(&text.text()));
    }

    #[test]
    fn a_text_that_grows_keeps_its_lines(text in "[a-c漢 ]{0,60}", more in "[a-c漢 ]{0,20}", columns in 8_usize..20) {
        let certain = |text: &str| {
            let mut wrapper = Wrapper::new(columns, Text::new(), Text::new());
            wrapper.push(Role::Plain, text);
            wrapper.certain().iter().map(Text::text).collect::<Vec<_>>().join("\n")
        };
        let (before, after) = (certain(&text), certain(&format!("{text}{more}")));
        prop_assert!(after.starts_with(&before), "{:?} {:?}", before, after);
    }
}
