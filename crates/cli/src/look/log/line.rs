//! Lines of the log, for people.
//!
//! A terminal gets the time of day, with a line for each new day; elsewhere, every line has the whole time.

use std::io::{self, IsTerminal as _};

use backstitch::host::{LogEntry, is_failure};
use backstitch::journal::{RecordBody, Role as Speaker};
use backstitch::time::Timestamp;
use jiff::tz::TimeZone;

use super::super::waiting::call_text;
use crate::terminal::{self, Role, Text, columns, wrapped_within};

/// The fewest columns that a text is wrapped to.
const LEAST_ROOM: usize = 20;

/// The most branches that are indented.
const MOST_RAILS: usize = 8;

/// Prints the lines of a log.
pub(super) struct Lines {
    is_terminal: bool,
    zone: TimeZone,
    /// The day of the latest line.
    day: Option<String>,
}

impl Lines {
    pub(super) fn new() -> Self {
        Self { is_terminal: io::stdout().is_terminal(), zone: TimeZone::system(), day: None }
    }

    /// Returns the day of a line, if the line before it was of another day.
    pub(super) fn new_day(&mut self, at: Timestamp) -> Option<String> {
        let day = self.is_terminal.then(|| self.format(at, "%Y-%m-%d"))?;
        if self.day.as_ref() == Some(&day) {
            return None;
        }
        self.day = Some(day.clone());
        Some(day)
    }

    /// Returns the time of a line.
    pub(super) fn time(&self, at: Timestamp) -> String {
        if self.is_terminal { self.format(at, "%H:%M:%S") } else { at.to_string() }
    }

    fn format(&self, at: Timestamp, form: &str) -> String {
        match jiff::Timestamp::from_microsecond(at.unix_micros()) {
            Ok(moment) => moment.to_zoned(self.zone.clone()).strftime(form).to_string(),
            Err(_) => at.to_string(),
        }
    }

    /// Prints the line of a record, and the call that a pause is about.
    pub(super) fn print(&mut self, entry: &LogEntry) {
        let (record, is_visible) = (&entry.record, entry.is_visible);
        if let Some(day) = self.new_day(record.at) {
            terminal::line(&Text::new().add(Role::Heading, day));
        }
        let rail = "| ".repeat(usize::try_from(entry.branch).unwrap_or(MOST_RAILS).min(MOST_RAILS));
        let mark = if is_visible { "*" } else { "·" };
        let number = format!("{:>5} ", record.position.number());
        let time = format!("{} ", self.time(record.at));
        let indent = number.len() + time.len() + rail.len() + 2;
        let role = if is_visible { role_of(&record.body) } else { Role::Dim };
        let start = Text::new().add(Role::Id, number).add(Role::Dim, time).add(Role::Dim, &rail);
        let mut start = start.plain(format!("{mark} "));
        for part in self.fitting(&entry.text, indent) {
            terminal::line(&start.add(role, part));
            start = Text::new().plain(" ".repeat(indent));
        }
        let decision = entry.decision.as_ref();
        if let Some(call) = decision.and_then(|decision| call_text(decision, &" ".repeat(indent + 2))) {
            println!("{call}");
        }
    }

    /// Breaks a text into lines that fit behind the indentation, on a terminal.
    fn fitting(&self, text: &str, indent: usize) -> Vec<String> {
        if !self.is_terminal {
            return vec![text.to_owned()];
        }
        let lines = wrapped_within(text, columns().saturating_sub(indent).max(LEAST_ROOM));
        if lines.is_empty() { vec![String::new()] } else { lines }
    }
}

/// Returns the role of a record's text.
pub(super) fn role_of(body: &RecordBody) -> Role {
    match body {
        body if is_failure(body) => Role::Failure,
        RecordBody::MessageAppended(message) if message.role() == Speaker::User => Role::Emphasis,
        RecordBody::Paused(_) | RecordBody::SessionStopped(_) => Role::Warning,
        RecordBody::Rewound(_) | RecordBody::Resolved(_) => Role::Accent,
        RecordBody::EvaluationFinished(_) => Role::Success,
        _ => Role::Plain,
    }
}
