//! What a command prints: one JSON object for programs, or lines for people.

use std::process::ExitCode;

use serde::Serialize;
use serde_json::Value;

use crate::common::Common;
use crate::terminal::{self, Text};

/// The result of a command, in both forms.
#[must_use]
pub(crate) struct Report {
    json: Value,
    lines: Vec<ReportLine>,
}

/// A part of a report for people.
pub(crate) enum ReportLine {
    Text(Text),
    /// A line that is not broken for a terminal, such as one of a file.
    Exact(Text),
    /// Data with its own ends of lines. A pipe gets it byte for byte.
    Data(String),
}

impl From<Text> for ReportLine {
    fn from(text: Text) -> Self {
        Self::Text(text)
    }
}

impl From<String> for ReportLine {
    fn from(text: String) -> Self {
        Self::Text(text.into())
    }
}

impl Report {
    /// Reports a value, so far without lines.
    pub(crate) fn new(value: &impl Serialize) -> Self {
        let json = serde_json::to_value(value).expect("invariant: reports have texts as keys");
        Self { json, lines: Vec::new() }
    }

    /// Adds a line.
    pub(crate) fn line(mut self, line: impl Into<Text>) -> Self {
        self.lines.push(ReportLine::Text(line.into()));
        self
    }

    /// Adds lines.
    pub(crate) fn lines(mut self, lines: impl IntoIterator<Item = impl Into<ReportLine>>) -> Self {
        self.lines.extend(lines.into_iter().map(Into::into));
        self
    }

    /// Adds a field to the object, such as the command that continues, or replaces it.
    pub(crate) fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.json[name] = value.into();
        self
    }

    /// Prints the object or the lines. The command has succeeded.
    pub(crate) fn print(self, common: &Common) -> ExitCode {
        if common.json {
            println!("{}", self.json);
        } else {
            for line in &self.lines {
                match line {
                    ReportLine::Text(text) => terminal::line(text),
                    ReportLine::Exact(text) => terminal::exact_line(text),
                    ReportLine::Data(text) => terminal::data(text),
                }
            }
        }
        ExitCode::SUCCESS
    }
}
