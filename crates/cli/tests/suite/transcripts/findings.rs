//! What is wrong with the output of commands: exit codes, words, and what holds for all output.

use std::collections::BTreeSet;

use super::rows::{Expected, Row};
use crate::command::Ran;

/// What is wrong with the output of commands.
#[derive(Default)]
pub(super) struct Findings(Vec<String>);

impl Findings {
    pub(super) fn check(&mut self, row: &Row, holds: bool, what: &str, printed: &str) {
        if !holds {
            self.0.push(format!("`{}` {what}:\n{printed}", row.command));
        }
    }

    /// Checks what a command has printed to pipes.
    pub(super) fn check_pipe(&mut self, row: &Row, expected: Expected, ran: &Ran) {
        let all = format!("{}{}", ran.output, ran.errors);
        self.check(
            row,
            ran.code == Some(expected.code),
            &format!("exits with {:?} instead of {}", ran.code, expected.code),
            &all,
        );
        self.check(row, all.contains(expected.words), &format!("does not print {:?}", expected.words), &all);
        self.check(row, !all.contains('\u{1b}'), "prints control sequences to a pipe", &all);
        if ran.code != Some(0) && ran.errors.contains("error: ") {
            let last = ran.errors.lines().last().unwrap_or_default();
            self.check(row, last.starts_with("code: ") && !last.contains("internal"), "names no code", &all);
            let message = ran.errors.lines().find(|line| line.starts_with("error: ")).unwrap_or_default();
            let parts: Vec<&str> = message.split(": ").collect();
            let different: BTreeSet<&str> = parts.iter().copied().collect();
            self.check(row, parts.len() == different.len(), "repeats itself", message);
        }
        self.check_words(row, &all);
    }

    /// Checks what a command has printed to a terminal.
    pub(super) fn check_terminal(
        &mut self,
        row: &Row,
        expected: Expected,
        (code, text): (Option<i32>, String),
    ) {
        let wrong_code = format!("exits with {code:?} instead of {}", expected.code);
        self.check(row, code == Some(expected.code), &wrong_code, &text);
        // Words may be cut, or wrapped by the command.
        let joined = |text: &str| text.split_whitespace().collect::<String>();
        let start = joined(expected.words).chars().take(5).collect::<String>();
        self.check(
            row,
            joined(&text).contains(&start),
            &format!("does not print {:?}", expected.words),
            &text,
        );
        if code != Some(0) && text.contains("error: ") {
            // The whole message is printed, and the code is its last line.
            let says_more = joined("` says more");
            self.check(row, joined(&text).contains("code:"), "names no code", &text);
            self.check(row, joined(&text).ends_with(&says_more), "does not end with its code", &text);
        }
        self.check_words(row, &text);
    }

    /// Checks what holds for the text of every command, on every output.
    fn check_words(&mut self, row: &Row, text: &str) {
        self.check(row, !text.contains("panicked at"), "panics", text);
        for line in text.lines() {
            self.check(row, times_have_zones(line), "prints a time without a zone", line);
            // JSON, programs and commands are not words of the command.
            if line.contains(['{', '"', '$', '`']) || line.contains("_clap_") || line.contains("COMP") {
                continue;
            }
            let found =
                line.split(|one: char| !one.is_alphanumeric() && one != '_').find(|word| is_identifier(word));
            self.check(row, found.is_none(), "prints a name of the program", line);
            let counted =
                ["line", "turn", "call", "record", "file", "message", "session", "object", "item", "byte"];
            let is_wrong = |what: &&str| {
                format!("{line} ").contains(&format!(" 1 {what}s")) || line.starts_with(&format!("1 {what}s"))
            };
            self.check(
                row,
                !line.contains("(s)") && !counted.iter().any(is_wrong),
                "counts one thing as many",
                line,
            );
        }
    }

    #[track_caller]
    pub(super) fn report(self) {
        assert!(self.0.is_empty(), "{} findings:\n\n{}", self.0.len(), self.0.join("\n\n"));
    }
}

/// Whether a word looks like the name of a type.
fn is_identifier(word: &str) -> bool {
    let capitals = word.chars().filter(|one| one.is_uppercase()).count();
    let has_form =
        word.starts_with(|one: char| one.is_uppercase()) && word.contains(|one: char| one.is_lowercase());
    has_form && capitals > 1 && !["OpenAI", "KiB", "MiB", "GiB"].contains(&word)
}

/// Whether every time in a line carries a zone.
fn times_have_zones(line: &str) -> bool {
    let form = b"0000-00-00T00:00";
    let is_time = |bytes: &[u8]| {
        form.iter().zip(bytes).all(|(form, byte)| match form {
            b'0' => byte.is_ascii_digit(),
            b'T' => matches!(byte, b'T' | b' '),
            other => other == byte,
        })
    };
    let times = line.as_bytes().windows(form.len()).enumerate().filter(|(_, bytes)| is_time(bytes));
    times
        .map(|(at, _)| {
            line[at + form.len()..]
                .trim_start_matches(|one: char| one.is_ascii_digit() || ":. ".contains(one))
        })
        .all(|rest| rest.starts_with(['Z', '+', '-']))
}
