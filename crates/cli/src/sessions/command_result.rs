//! Results of commands, as people read them.
//!
//! The model gets the exit code and the output of a command as JSON. A person gets the output as text, and the exit code apart
//! from it.

use backstitch::one_line;
use serde::Deserialize;

/// The result of a command. Other fields, such as the report of the sandbox, are left to the exact result.
#[derive(Debug, Deserialize, PartialEq)]
pub(super) struct CommandResult {
    exit_code: i32,
    #[serde(default)]
    stdout: String,
    #[serde(default)]
    stderr: String,
}

impl CommandResult {
    /// Reads the text of a result. `None` if it is not that of a command.
    pub(super) fn of(text: &str) -> Option<Self> {
        // A list could be read as the fields, too.
        text.starts_with('{').then(|| serde_json::from_str(text).ok()).flatten()
    }

    /// The exit code, in words.
    pub(super) fn exit(&self) -> String {
        format!("exit code {}", self.exit_code)
    }

    /// The exit code, and the beginning of the output in one line.
    pub(super) fn line(&self, most: usize) -> String {
        let most = most.saturating_sub(self.exit().len() + 2);
        let output = [&self.stdout, &self.stderr].map(|text| one_line(text, most));
        let output = output.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join(" ");
        match &*one_line(&output, most) {
            "" => format!("{}, no output", self.exit()),
            output => format!("{}: {output}", self.exit()),
        }
    }
}

/// Formats a result in one line.
pub(super) fn result_line(text: &str, most: usize) -> String {
    CommandResult::of(text).map_or_else(|| one_line(text, most), |result| result.line(most))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_output_is_text_and_the_exit_code_stands_apart() {
        let line = |text: &str| result_line(text, 30);
        assert_eq!(line(r#"{"exit_code":0,"stdout":"one\ntwo\n","stderr":""}"#), "exit code 0: one two");
        assert_eq!(
            line(r#"{"exit_code":2,"stdout":"","stderr":"no such\nfile"}"#),
            "exit code 2: no such file"
        );
        assert_eq!(line(r#"{"exit_code":0,"stdout":" \n","stderr":""}"#), "exit code 0, no output");
        assert_eq!(line(r#"{"exit_code":1,"stdout":"a","stderr":"b","sandbox":"x"}"#), "exit code 1: a b");
        for other in [r#"{"code":1}"#, "plain text", r#"{"exit_code":"x"}"#, "", "[0]"] {
            assert_eq!(line(other), one_line(other, 30), "{other}");
        }
    }
}
