//! The sections of a message: definitions, calls, output.
//!
//! Empty sections are left out. Sections are separated by a blank line and end without one.

use super::fence::write_foreign;
use super::history::Live;
use super::lines::{write_call, write_definition};
use super::{DisplayOptions, ShownCount, ToolResults};
use crate::text::cut;
use crate::turn::{Turn, TurnCall};

/// A message that is built section by section.
pub(super) struct Text(pub(super) String);

impl Text {
    /// Starts a section, after a blank line if there is text before it.
    pub(super) fn begin(&mut self) -> &mut String {
        if !self.0.is_empty() {
            while self.0.ends_with('\n') {
                self.0.pop();
            }
            self.0.push_str("\n\n");
        }
        &mut self.0
    }

    /// Adds a section with this text.
    pub(super) fn section(&mut self, text: &str) {
        self.begin().push_str(text);
    }

    /// The text without trailing line breaks.
    pub(super) fn finish(mut self) -> String {
        while self.0.ends_with('\n') {
            self.0.pop();
        }
        self.0
    }
}

/// Writes the section `user/`: the newest definitions within the budget, in the order of their first
/// definitions. `total` is their number, and `newest` yields them with the newest first.
pub(super) fn write_user<'a>(
    text: &mut Text,
    newest: impl Iterator<Item = Live<'a>>,
    total: usize,
    with_sample: impl Fn(&Turn) -> bool,
    display: &DisplayOptions,
) -> ShownCount {
    let mut lines: Vec<(u64, String)> = Vec::new();
    let mut bytes = 0;
    for live in newest {
        let mut line = String::new();
        write_definition(&mut line, live.defined, with_sample(live.turn), display);
        bytes += line.len();
        // At least one is shown: an empty section would mean that there are none.
        if bytes > display.user_budget && !lines.is_empty() {
            break;
        }
        lines.push((live.first, line));
    }
    let shown = ShownCount { total, shown: lines.len() };
    if lines.is_empty() {
        return shown;
    }
    lines.sort_unstable_by_key(|(first, _)| *first);
    let out = text.begin();
    out.push_str(";; === user/ (your prelude) ===\n");
    if shown.dropped() > 0 {
        let what = if shown.dropped() == 1 { "older definition" } else { "older definitions" };
        out.push_str(&format!(";; ({} {what} not shown)\n", shown.dropped()));
    }
    lines.iter().for_each(|(_, line)| out.push_str(line));
    shown
}

/// Writes the calls. `total` is their number, and `last` yields those to show.
pub(super) fn write_calls<'a>(
    text: &mut Text,
    last: impl Iterator<Item = (&'a Turn, &'a TurnCall)>,
    total: usize,
    display: &DisplayOptions,
) -> ShownCount {
    let mut shown = ShownCount { total, shown: 0 };
    let limit = total.min(display.tool_call_limit);
    if limit == 0 {
        return shown;
    }
    let out = text.begin();
    out.push_str(";; Tool calls made:\n");
    write_dropped(out, total - limit, ["earlier call", "earlier calls"], display);
    for (turn, call) in last {
        let with_result = display.tool_results == ToolResults::WhenSilent && turn.prints.is_empty();
        write_call(out, call, with_result, !turn.success, display);
        shown.shown += 1;
    }
    shown
}

/// Writes the prints of one turn. `total` is their number, and `last` yields those to show.
pub(super) fn write_output<'a>(
    text: &mut Text,
    last: impl Iterator<Item = &'a str>,
    total: usize,
    display: &DisplayOptions,
) -> ShownCount {
    write_output_of(text, last.map(|print| (None, print)), total, display)
}

/// Writes the prints of several turns, under the numbers of their turns if the options want notes on turns: prints
/// stay until later ones replace them, and a model would take old ones for those of its last program.
pub(super) fn write_output_by_turn<'a>(
    text: &mut Text,
    last: impl Iterator<Item = (&'a Turn, &'a str)>,
    total: usize,
    display: &DisplayOptions,
) -> ShownCount {
    let number = |turn: &Turn| Some(turn.number).filter(|_| display.turn_notes);
    write_output_of(text, last.map(|(turn, print)| (number(turn), print)), total, display)
}

fn write_output_of<'a>(
    text: &mut Text,
    last: impl Iterator<Item = (Option<u64>, &'a str)>,
    total: usize,
    display: &DisplayOptions,
) -> ShownCount {
    let mut shown = ShownCount { total, shown: 0 };
    let limit = total.min(display.println_limit);
    if limit == 0 {
        return shown;
    }
    let mut outputs: Vec<(Option<u64>, String)> = Vec::new();
    for (turn, print) in last {
        let print = cut(print, display.println_characters);
        match outputs.last_mut() {
            Some((same, printed)) if *same == turn => {
                printed.push('\n');
                printed.push_str(&print);
            }
            _ => outputs.push((turn, print.into_owned())),
        }
        shown.shown += 1;
    }
    let out = text.begin();
    let dropped = |out: &mut String| {
        write_dropped(out, total - limit, ["earlier print", "earlier prints"], display);
    };
    for (index, (turn, printed)) in outputs.iter().enumerate() {
        match turn {
            None => {
                out.push_str(";; Output:\n");
                dropped(out);
            }
            Some(number) => {
                if index == 0 {
                    // Before the number: they may be of earlier turns.
                    dropped(out);
                } else if !out.ends_with('\n') {
                    out.push('\n');
                }
                out.push_str(&format!(";; Output of turn {number}:\n"));
            }
        }
        write_foreign(out, printed, display.fence);
    }
    shown
}

fn write_dropped(out: &mut String, dropped: usize, [one, many]: [&str; 2], display: &DisplayOptions) {
    if dropped > 0 && display.note_dropped {
        let what = if dropped == 1 { one } else { many };
        out.push_str(&format!(";; ({dropped} {what} not shown)\n"));
    }
}
