//! `doctor`: checks everything that the command needs, and says what to do about each problem.
//!
//! It changes nothing, sends nothing, and never prints a key. The exit code is 1 if something is broken.

mod places;
mod programs;

use std::io::{self, IsTerminal as _};
use std::process::ExitCode;

use serde::Serialize;
use serde_json::json;

use crate::common::Common;
use crate::report::Report;
use crate::terminal::{self, Role, Text};

/// Columns of a terminal below which a text gets lines of its own.
const NARROW: usize = 60;

/// How a check ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
enum Grade {
    #[serde(rename = "ok")]
    Fine,
    /// Something that a user should know, and that breaks nothing.
    #[serde(rename = "note")]
    Notice,
    #[serde(rename = "broken")]
    Broken,
}

/// The result of a check.
#[derive(Serialize)]
struct Finding {
    #[serde(rename = "check")]
    subject: &'static str,
    #[serde(rename = "status")]
    grade: Grade,
    text: String,
    /// What to do.
    advice: Option<String>,
}

impl Finding {
    fn fine(subject: &'static str, text: impl Into<String>) -> Self {
        Self { subject, grade: Grade::Fine, text: text.into(), advice: None }
    }

    fn notice(subject: &'static str, text: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { subject, grade: Grade::Notice, text: text.into(), advice: Some(advice.into()) }
    }

    fn broken(subject: &'static str, text: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { subject, grade: Grade::Broken, text: text.into(), advice: Some(advice.into()) }
    }
}

/// Checks everything that the command needs.
pub(crate) fn run(common: &Common) -> anyhow::Result<ExitCode> {
    let mut findings = vec![programs::version()];
    places::check(common, &mut findings);
    findings.extend([
        programs::git(),
        programs::shell(),
        programs::sandbox(),
        programs::namespaces(),
        programs::processes(),
        programs::terminal(),
    ]);
    findings.extend(programs::certificates());
    findings.extend(programs::time_zones());
    #[cfg(feature = "bridge")]
    findings.extend(programs::engines());
    let is_fine = findings.iter().all(|finding| finding.grade != Grade::Broken);
    let report = Report::new(&json!({"v": 1, "ok": is_fine, "checks": findings}));
    report.lines(findings.iter().flat_map(lines)).print(common);
    Ok(if is_fine { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn lines(finding: &Finding) -> Vec<Text> {
    let (mark, role) = match finding.grade {
        Grade::Fine => ("ok", Role::Success),
        Grade::Notice => ("note", Role::Warning),
        Grade::Broken => ("broken", Role::Failure),
    };
    let mut start =
        Text::new().add(role, format!("{mark:<7}")).add(Role::Emphasis, format!("{:<11}", finding.subject));
    let indent = if terminal::columns() < NARROW { 2 } else { start.width() };
    let mut all = Vec::new();
    if indent < start.width() {
        // The text gets lines of its own.
        all.push(start.trimmed());
        start = Text::new().plain(" ".repeat(indent));
    }
    let lines = fitting(&finding.text, indent).into_iter().map(|line| (Role::Plain, line));
    let advice = finding.advice.iter().flat_map(|advice| fitting(advice, indent));
    for (role, line) in lines.chain(advice.map(|line| (Role::Dim, line))) {
        all.push(std::mem::take(&mut start).add(role, line));
        start = Text::new().plain(" ".repeat(indent));
    }
    all
}

/// Breaks a text into lines that fit behind the indentation, on a terminal.
fn fitting(text: &str, indent: usize) -> Vec<String> {
    if io::stdout().is_terminal() {
        terminal::wrapped(text, terminal::columns().saturating_sub(indent))
    } else {
        vec![text.to_owned()]
    }
}
