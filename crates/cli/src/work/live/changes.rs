//! What a call changed in files, as a person sees it when the call has ended.
//!
//! A change of a file tool is a diff, limited to some lines. Of a command, only the names of the files are printed: it may have changed many, and they are not what
//! was asked for.

use backstitch::id::{CallId, SessionId};
use backstitch::journal::{CallFinished, CallVerdict, ChangeKind, ChangedPath};
use backstitch::report::ChangedFile;

use super::{Mode, Role, Screen, Text};
use crate::common::{Common, counted};
use crate::open::short;
use crate::terminal::{self, difference};

/// The most lines of the diffs of a call that are printed.
const MOST_LINES: usize = 24;

/// The most files of a call whose diffs are printed.
const MOST_FILES: usize = 6;

impl Screen {
    /// Prints what a call has changed.
    pub(super) fn show_changes(&self, common: &Common, session: SessionId, finished: &CallFinished) {
        if self.mode != Mode::Terminal || terminal::is_quiet() || finished.outcome != CallVerdict::Succeeded {
            return;
        }
        let Some(changes) = &finished.changes else { return };
        let (is_shown, is_command, files) = {
            let mut state = self.state();
            let is_shown = state.shown_calls.remove(&finished.call_id);
            (is_shown, state.commands.remove(&finished.call_id), state.files.clone())
        };
        let Some(files) = files.filter(|_| !is_shown && changes.counts().total() > 0) else { return };
        let all = changes.paths().unwrap_or_default().len();
        if is_command || all == 0 || all > MOST_FILES {
            self.status_text(&names(changes.paths().unwrap_or_default(), changes.counts().total()));
            return;
        }
        let hint = common.hint(format_args!("show {} {} --diff", short(session), short(finished.call_id)));
        for line in lines(&files.changed_files(changes), terminal::columns(), terminal::is_plain(), &hint) {
            self.status_text(&line);
        }
    }

    /// Notes that the changes of a call need not be shown.
    pub(super) fn skip_changes(&self, call: CallId) {
        self.state().shown_calls.insert(call);
    }
}

/// Names the files that a command changed.
fn names(paths: &[ChangedPath], total: u64) -> Text {
    let listed: Vec<&str> = paths.iter().take(MOST_FILES).map(|changed| changed.path.as_str()).collect();
    let more = total.saturating_sub(listed.len() as u64);
    let list = match (listed.is_empty(), more) {
        (true, _) => counted(total, "file"),
        (false, 0) => listed.join(", "),
        (false, more) => format!("{} and {more} more", listed.join(", ")),
    };
    Text::new().add(Role::Dim, format!("  changed {list}"))
}

/// Formats diffs, with a line for each file.
fn lines(files: &[ChangedFile], columns: usize, is_plain: bool, hint: &str) -> Vec<Text> {
    let mut lines = Vec::new();
    for file in files {
        let (letter, word, role) = match file.change {
            ChangeKind::Added => ("A", "added", Role::Added),
            ChangeKind::Deleted => ("D", "deleted", Role::Removed),
            ChangeKind::Mode => ("T", "changed the mode of", Role::Warning),
            _ => ("M", "changed", Role::Accent),
        };
        let diff = file.text().unwrap_or_default();
        let count = |mark: char| diff.lines().filter(|line| line.starts_with(mark)).count();
        let (added, removed) = (count('+'), count('-'));
        let start = if is_plain { word } else { letter };
        let heading = Text::new().plain("  ").add(role, start).plain(" ").add(Role::Emphasis, &file.path);
        lines.push(match (diff.is_empty(), is_plain) {
            (true, _) => heading,
            (false, true) => heading.plain(format!(": {added} lines added, {removed} removed")),
            (false, false) => heading.add(Role::Dim, format!(": +{added} -{removed}")),
        });
        let parts = diff.lines().filter(|line| !line.starts_with('\\')).enumerate();
        // The place of the first part says nothing that its lines do not say.
        let parts = parts.filter(|(place, line)| *place > 0 || !line.starts_with("@@"));
        parts.for_each(|(_, line)| lines.extend(diff_lines(line, columns, is_plain)));
    }
    let more = lines.len().saturating_sub(MOST_LINES);
    // One line would take as much room as the line about it.
    if more > 1 {
        lines.truncate(MOST_LINES);
        lines.push(Text::new().add(Role::Dim, format!("  … {}: {hint}", counted(more, "more line"))));
    }
    lines
}

/// Formats a line of a diff, broken between words for a terminal that is too narrow for it.
fn diff_lines(line: &str, columns: usize, is_plain: bool) -> Vec<Text> {
    let role = difference::role(line);
    let (mark, text) = match (line.strip_prefix(['+', '-', ' ']), role) {
        _ if line.starts_with("@@") => {
            return vec![Text::new().add(Role::Dim, if is_plain { "  then" } else { "  ⋮" })];
        }
        (Some(text), Role::Added) => (if is_plain { "added " } else { "+" }, text),
        (Some(text), Role::Removed) => (if is_plain { "removed " } else { "-" }, text),
        (Some(text), _) => (if is_plain { "same " } else { " " }, text),
        (None, _) => ("", line),
    };
    let text = text.replace('\t', "    ");
    let indent = text.len() - text.trim_start_matches(' ').len();
    let first = Text::new().plain("    ").add(role, format!("{mark}{}", &text[..indent]));
    terminal::hanging(first, 4 + mark.len() + indent, role, &text[indent..], columns)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(diff: &str) -> ChangedFile {
        ChangedFile {
            path: "hem.txt".to_owned(),
            change: ChangeKind::Modified,
            diff: Some(Some(diff.to_owned())),
        }
    }

    fn texts(diff: &str, columns: usize, is_plain: bool) -> Vec<String> {
        lines(&[file(diff)], columns, is_plain, "backstitch show").iter().map(Text::text).collect()
    }

    #[test]
    fn a_diff_is_broken_between_words_and_keeps_its_indentation() {
        let diff = "@@ -1,2 +1,2 @@\n one\n-\ttwo\n+\tthree four five\n@@ -9 +9 @@\n-x\n";
        let expected = [
            "  M hem.txt: +1 -2",
            "     one",
            "    -    two",
            "    +    three",
            "         four",
            "         five",
        ];
        let found = texts(diff, 16, false);
        assert_eq!(found[..6], expected);
        assert_eq!(found[6..], ["  ⋮", "    -x"]);
        let plain = texts(diff, 80, true);
        assert_eq!(
            plain[..3],
            ["  changed hem.txt: 1 lines added, 2 removed", "    same one", "    removed     two"]
        );
    }

    #[test]
    fn a_long_diff_is_cut() {
        let long: String = (0..100).map(|number| format!("+line {number}\n")).collect();
        let found = texts(&format!("@@ -0,0 +1,100 @@\n{long}"), 80, false);
        assert_eq!(found.len(), MOST_LINES + 1);
        assert_eq!(found.last().unwrap(), "  … 77 more lines: backstitch show");
        let hostile = texts("@@ -0,0 +1 @@\n+\u{1b}[2J\u{202e}\n", 80, false);
        assert_eq!(hostile[1], "    +\\u001b[2J\\u202e");
    }
}
