//! `doctor`: checks everything that the command needs, and says what to do about each problem.
//!
//! It changes nothing, sends nothing, and never prints a key. The exit code is 1 if something is broken.

mod places;
mod programs;

use std::process::ExitCode;

use clap::Args;
use serde_json::json;

use crate::common::Common;
use crate::terminal::style::{Role, Text};
use crate::terminal::{self};

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
        findings.extend([programs::git(), programs::shell(), programs::sandbox(), programs::terminal()]);
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
    let line =
        Text::new().add(role, format!("{mark:<7}")).add(Role::Emphasis, format!("{:<10}", finding.subject));
    terminal::line(&line.plain(&finding.text));
    if let Some(advice) = &finding.advice {
        terminal::line(&Text::new().plain(" ".repeat(17)).add(Role::Dim, advice));
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
