//! The output of a program, line by line.
//!
//! `print`, `pr` and `newline` build up a line, which `println` and the end of the program close. A program
//! that prints too much still succeeds: its first and its last lines are kept, with the number of those
//! between them.

use std::collections::VecDeque;

use crate::limits::Limits;

/// The lines that a program or a branch has printed.
#[derive(Default)]
pub(crate) struct PrintLog {
    first: Vec<String>,
    last: VecDeque<String>,
    /// The number of lines between the first and the last ones.
    left_out: usize,
    /// The line that is not closed yet.
    open: Option<String>,
    characters: [usize; 2],
    /// Texts that `with-out-str` collects, innermost last.
    captures: Vec<String>,
}

impl PrintLog {
    /// Adds text to the current line. `ends` closes it.
    pub(crate) fn add(&mut self, text: &str, ends: bool, limits: &Limits) {
        let open = self.open.get_or_insert_default();
        open.push_str(text);
        let most = limits.print_characters_per_call;
        if let Some((cut, _)) = open.char_indices().nth(most) {
            open.truncate(cut);
            open.push_str("...");
        }
        // A text that ends in a line break has ended its line.
        let is_ended = ends || text.ends_with('\n');
        if is_ended && let Some(mut line) = self.open.take() {
            if !ends && line.ends_with('\n') {
                line.pop();
            }
            self.push(line, limits);
        }
    }

    fn push(&mut self, line: String, limits: &Limits) {
        let size = line.chars().count();
        let (most_lines, most_characters) = (limits.print_calls, limits.print_characters);
        let has_room = self.first.len() < most_lines.div_ceil(2)
            && self.characters[0] + size <= most_characters.div_ceil(2);
        if has_room && self.last.is_empty() && self.left_out == 0 {
            self.characters[0] += size;
            self.first.push(line);
            return;
        }
        self.characters[1] += size;
        self.last.push_back(line);
        while self.last.len() > most_lines / 2 || self.characters[1] > most_characters / 2 {
            let Some(dropped) = self.last.pop_front() else { break };
            self.characters[1] -= dropped.chars().count();
            self.left_out += 1;
        }
    }

    /// Adds the lines of a finished branch.
    pub(crate) fn extend(&mut self, branch: PrintLog, limits: &Limits) {
        let left_out = branch.left_out;
        for (at, line) in branch.into_lines().into_iter().enumerate() {
            // The note on what was left out is counted anew.
            if left_out > 0 && at > 0 && line == note(left_out) {
                self.left_out += left_out;
            } else {
                self.push(line, limits);
            }
        }
    }

    /// Returns all lines that are kept. A line that was not closed is the last one.
    pub(crate) fn into_lines(mut self) -> Vec<String> {
        let mut lines = self.first;
        if self.left_out > 0 {
            lines.push(note(self.left_out));
        }
        lines.extend(self.last);
        lines.extend(self.open.take());
        lines
    }

    /// Returns the bytes that the texts take.
    pub(crate) fn bytes(&self) -> usize {
        let lines = self.first.iter().chain(&self.last).chain(&self.open).chain(&self.captures);
        lines.map(|text| text.len() + 32).sum()
    }

    /// Begins to collect what is printed as a text.
    pub(crate) fn begin_capture(&mut self) {
        self.captures.push(String::new());
    }

    /// Returns the text since [`PrintLog::begin_capture`].
    pub(crate) fn end_capture(&mut self) -> String {
        self.captures.pop().unwrap_or_default()
    }

    /// Drops all texts that are being collected.
    pub(crate) fn end_captures(&mut self) {
        self.captures.clear();
    }

    /// Returns the text that is being collected.
    pub(crate) fn capture(&mut self) -> Option<&mut String> {
        self.captures.last_mut()
    }
}

fn note(left_out: usize) -> String {
    let lines = if left_out == 1 { "line" } else { "lines" };
    format!("... ({left_out} {lines} left out) ...")
}
