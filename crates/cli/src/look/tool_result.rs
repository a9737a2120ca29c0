//! Results of tools, as people read them.
//!
//! The model gets the result of a tool as JSON. A person gets one line: for a command its exit code and the beginning of its
//! output, for the tools that read files how much they found. Any other result is shown as it is.

use backstitch::host::one_line;
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::common::counted;

/// A result of a known form.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum KnownResult {
    /// That of a command. Other fields, such as the report of the sandbox, are left to the exact result.
    Command {
        /// How it ended.
        exit_code: i32,
        #[serde(default)]
        stdout: String,
        #[serde(default)]
        stderr: String,
    },
    /// Lines of a file.
    Lines(LineRange),
    /// Lines that match a pattern.
    Matches(MatchList),
    /// The content of a directory.
    Entries(EntryList),
    /// Files that match a pattern.
    Paths(PathList),
    /// The plan of a session.
    Plan(PlanResult),
}

/// The plan of a session.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PlanResult {
    pub(crate) objective: String,
    #[serde(rename = "status")]
    _status: IgnoredAny,
    pub(crate) steps: Vec<StepResult>,
}

/// A step of a plan.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StepResult {
    pub(crate) step: u32,
    pub(crate) title: String,
    pub(crate) status: String,
}

/// Lines of a file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LineRange {
    text: String,
    first_line: usize,
    last_line: usize,
    total_lines: usize,
    #[serde(default, rename = "note")]
    _note: IgnoredAny,
}

/// Lines that match a pattern.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MatchList {
    matches: Vec<IgnoredAny>,
    searched: usize,
    #[serde(default, rename = "note")]
    _note: IgnoredAny,
}

/// The content of a directory.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EntryList {
    #[serde(rename = "path")]
    _path: IgnoredAny,
    entries: Vec<IgnoredAny>,
    #[serde(default, rename = "note")]
    _note: IgnoredAny,
}

/// Files that match a pattern.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PathList {
    paths: Vec<String>,
    #[serde(default, rename = "note")]
    _note: IgnoredAny,
}

impl KnownResult {
    /// Reads the text of a result. `None` if its form is not known.
    pub(crate) fn of(text: &str) -> Option<Self> {
        // A list could be read as the fields, too.
        text.starts_with('{').then(|| serde_json::from_str(text).ok()).flatten()
    }

    /// Whether it is the result of a command.
    pub(crate) fn is_command(&self) -> bool {
        matches!(self, Self::Command { .. })
    }

    /// Whether a command has failed.
    pub(crate) fn is_failure(&self) -> bool {
        matches!(self, Self::Command { exit_code, .. } if *exit_code != 0)
    }

    /// The exit code of a command, in words.
    pub(crate) fn exit(&self) -> Option<String> {
        match self {
            Self::Command { exit_code, .. } => Some(format!("exit code {exit_code}")),
            _ => None,
        }
    }

    /// Formats it in one line.
    fn line(&self, most: usize) -> String {
        let (what, text) = match self {
            Self::Command { exit_code, stdout, stderr } => {
                let output = [stdout, stderr].map(|text| one_line(text, most));
                let output = output.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join(" ");
                if output.is_empty() {
                    return format!("exit code {exit_code}, no output");
                }
                (format!("exit code {exit_code}"), output)
            }
            Self::Lines(lines) if lines.total_lines == 0 => return "an empty file".to_owned(),
            Self::Lines(LineRange { text, first_line: 1, last_line, total_lines, .. })
                if last_line == total_lines =>
            {
                (counted(*total_lines, "line"), text.clone())
            }
            Self::Lines(LineRange { text, first_line, last_line, total_lines, .. }) => {
                (format!("lines {first_line} to {last_line} of {total_lines}"), text.clone())
            }
            Self::Matches(found) => {
                let lines = counted(found.matches.len(), "matching line");
                return format!("{lines} in {} searched", counted(found.searched, "file"));
            }
            Self::Entries(found) => return counted(found.entries.len(), "entry"),
            Self::Plan(plan) => {
                let done = plan.steps.iter().filter(|step| step.status == "done").count();
                (format!("{done} of {} done", counted(plan.steps.len(), "step")), plan.objective.clone())
            }
            Self::Paths(found) if found.paths.is_empty() => return "no path".to_owned(),
            Self::Paths(found) => (counted(found.paths.len(), "path"), found.paths.join(", ")),
        };
        let text = one_line(&text, most.saturating_sub(what.len() + 2));
        if text.is_empty() { what } else { format!("{what}: {text}") }
    }
}

/// Formats a result in one line.
pub(crate) fn result_line(text: &str, most: usize) -> String {
    KnownResult::of(text).map_or_else(|| one_line(text, most), |result| result.line(most))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> String {
        result_line(text, 40)
    }

    #[test]
    fn the_output_is_text_and_the_exit_code_stands_apart() {
        assert_eq!(line(r#"{"exit_code":0,"stdout":"one\ntwo\n","stderr":""}"#), "exit code 0: one two");
        let failed = r#"{"exit_code":2,"stdout":"","stderr":"no such\nfile"}"#;
        assert_eq!(line(failed), "exit code 2: no such file");
        assert_eq!(line(r#"{"exit_code":0,"stdout":" \n","stderr":""}"#), "exit code 0, no output");
        assert_eq!(line(r#"{"exit_code":1,"stdout":"a","stderr":"b","sandbox":"x"}"#), "exit code 1: a b");
    }

    #[test]
    fn what_was_read_is_counted() {
        let whole = r#"{"text":"a\nb\n","first_line":1,"last_line":2,"total_lines":2}"#;
        assert_eq!(line(whole), "2 lines: a b");
        let part = r#"{"text":"a\n","first_line":3,"last_line":3,"total_lines":9,"note":"6 more"}"#;
        assert_eq!(line(part), "lines 3 to 3 of 9: a");
        let empty = r#"{"text":"","first_line":1,"last_line":0,"total_lines":0}"#;
        assert_eq!(line(empty), "an empty file");
        let matches = r#"{"matches":[{"path":"a","line":1,"text":"x"}],"searched":7}"#;
        assert_eq!(line(matches), "1 matching line in 7 files searched");
        assert_eq!(line(r#"{"path":".","entries":[{"name":"a","kind":"file"},{}]}"#), "2 entries");
        assert_eq!(line(r#"{"paths":["a","b/"],"note":"more"}"#), "2 paths: a, b/");
        assert_eq!(line(r#"{"paths":[]}"#), "no path");
        let plan = r#"{"objective":"Mend it","status":"active","steps":[{"step":1,"title":"a","status":"done"},{"step":2,"title":"b","status":"pending"}]}"#;
        assert_eq!(line(plan), "1 of 2 steps done: Mend it");
    }

    #[test]
    fn other_results_are_shown_as_they_are() {
        let others = [
            r#"{"code":1}"#,
            "plain text",
            r#"{"exit_code":"x"}"#,
            "",
            "[0]",
            r#"{"paths":["a"],"owner":"b"}"#,
            r#"{"paths":[1]}"#,
            r#"{"entries":[]}"#,
        ];
        for other in others {
            assert_eq!(line(other), one_line(other, 40), "{other}");
        }
    }
}
