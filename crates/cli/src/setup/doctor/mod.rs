//! `doctor`: checks everything that the command needs, and says what to do about each problem.
//!
//! It changes nothing, sends nothing, and never prints a key. The exit code is 1 if something is broken.

mod places;
mod programs;

use std::io::{self, IsTerminal as _};
use std::process::ExitCode;

use clap::Args;
use serde_json::json;

use crate::common::Common;
use crate::terminal;
use crate::terminal::style::{Role, Text};

/// Columns of a terminal below which a text gets lines of its own.
const NARROW: usize = 60;

#[derive(Args)]
pub(crate) struct Doctor {}

/// How a check ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Grade {
    Fine,
    /// Something that a user should know, and that breaks nothing.
    Notice,
    Broken,
}

/// The result of a check.
struct Finding {
    subject: &'static str,
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

impl Doctor {
    pub(crate) fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
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
        #[cfg(feature = "bridge")]
        findings.extend(programs::engines());
        if common.json {
            print_json(&findings);
        } else {
            findings.iter().for_each(print);
        }
        let is_broken = findings.iter().any(|finding| finding.grade == Grade::Broken);
        Ok(if is_broken { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }
}

fn print(finding: &Finding) {
    let (mark, role) = match finding.grade {
        Grade::Fine => ("ok", Role::Success),
        Grade::Notice => ("note", Role::Warning),
        Grade::Broken => ("broken", Role::Failure),
    };
    let mut start =
        Text::new().add(role, format!("{mark:<7}")).add(Role::Emphasis, format!("{:<10}", finding.subject));
    let indent = if terminal::columns() < NARROW { 2 } else { start.width() };
    if indent < start.width() {
        // The text gets lines of its own.
        terminal::line(&start.trimmed());
        start = Text::new().plain(" ".repeat(indent));
    }
    let lines = fitting(&finding.text, indent).into_iter().map(|line| (Role::Plain, line));
    let advice = finding.advice.iter().flat_map(|advice| fitting(advice, indent));
    for (role, line) in lines.chain(advice.map(|line| (Role::Dim, line))) {
        terminal::line(&std::mem::take(&mut start).add(role, line));
        start = Text::new().plain(" ".repeat(indent));
    }
}

/// Breaks a text into lines that fit behind the indentation, on a terminal.
fn fitting(text: &str, indent: usize) -> Vec<String> {
    if io::stdout().is_terminal() {
        terminal::wrapped(text, terminal::columns().saturating_sub(indent))
    } else {
        vec![text.to_owned()]
    }
}

fn print_json(findings: &[Finding]) {
    let checks: Vec<_> = findings
        .iter()
        .map(|finding| {
            let status = match finding.grade {
                Grade::Fine => "ok",
                Grade::Notice => "note",
                Grade::Broken => "broken",
            };
            json!({"check": finding.subject, "status": status, "text": finding.text, "advice": finding.advice})
        })
        .collect();
    let is_fine = findings.iter().all(|finding| finding.grade != Grade::Broken);
    println!("{}", json!({"v": 1, "ok": is_fine, "checks": checks}));
}
