//! The report of a call, for people.

use std::time::Duration;

use backstitch::SystemClock;
use backstitch::host::{cost, reason_word};
use backstitch::journal::{CallVerdict, Decision};
use backstitch::report::{CallAttempt, CallDecision, CallReport, CallState};
use backstitch::time::{Clock as _, Timestamp};
use serde_json::Value;

use super::diff::change_lines;
use crate::open::short;
use crate::report::ReportLine;
use crate::terminal::time::{local, relative};
use crate::terminal::{Role, Text, duration, exact_json};

/// Formats the report of a call, with the changes of files as far as it has them.
pub(super) fn call_lines(report: &CallReport) -> Vec<ReportLine> {
    let role = match report.status {
        CallState::Succeeded => Role::Success,
        CallState::Failed => Role::Failure,
        _ => Role::Warning,
    };
    let heading = Text::new().add(Role::Heading, "call ").add(Role::Id, report.call.to_string()).plain("  ");
    let heading = heading.add(Role::Accent, &report.name).plain("  ").add(role, report.status.as_str());
    let mut lines =
        vec![if report.visible { heading } else { heading.add(Role::Dim, "  (before a rewind)") }];
    for (name, value) in facts(report) {
        lines.push(Text::new().add(Role::Dim, format!("  {name:<10}")).join(value));
    }
    let asked = if report.edited.is_some() { "the model asked for:" } else { "arguments:" };
    part(&mut lines, asked, &report.arguments);
    if let Some(edited) = &report.edited {
        part(&mut lines, "what ran, with the arguments of the approval:", edited);
    }
    for step in &report.steps {
        part(&mut lines, &format!("step {}:", step.name), &step.value);
    }
    output(&mut lines, report);
    let mut lines: Vec<ReportLine> = lines.into_iter().map(ReportLine::from).collect();
    files(&mut lines, report);
    lines
}

/// Lists what fits on a line each.
fn facts(report: &CallReport) -> Vec<(&'static str, Text)> {
    let mut facts = vec![(
        "session",
        Text::new().add(Role::Id, short(report.session)).plain(format!(", turn {}", report.turn)),
    )];
    if let Some(request) = &report.request {
        let model = Text::new().add(Role::Accent, format!("{}:{}", request.provider, request.model));
        let cost = cost(&request.usage);
        let cost = if cost.is_empty() { cost } else { format!(", its whole answer: {cost}") };
        facts.push(("model", model.plain(cost)));
    }
    if let Some(at) = report.asked_at {
        facts.push(("asked", Text::new().plain(moment(at))));
    }
    if let Some(effect) = report.effect {
        let words = format!("{}: {}", effect.as_str(), effect.description());
        facts.push(("effect", Text::new().plain(words)));
    }
    for pause in &report.pauses {
        let text = format!("for {}, {}", reason_word(pause.reason), moment(pause.at));
        facts.push(("waited", Text::new().plain(text)));
    }
    facts.extend(report.decisions.iter().map(|one| ("decision", decision(one))));
    facts.extend(report.attempts.iter().map(|one| ("attempt", attempt(one))));
    if let Some(child) = report.sub_agent {
        facts.push(("sub-agent", Text::new().add(Role::Id, short(child))));
    }
    let spent = cost(&report.spent);
    if !spent.is_empty() {
        facts.push(("cost", Text::new().plain(spent)));
    }
    facts
}

fn decision(decided: &CallDecision) -> Text {
    let (role, word, reason) = match &decided.decision {
        Decision::Approve => (Role::Success, "approved", None),
        Decision::Edit { .. } => (Role::Success, "approved with other arguments", None),
        Decision::Deny { reason } => (Role::Failure, "denied", reason.as_deref()),
        Decision::Happened { .. } => (Role::Plain, "it happened", None),
        Decision::Retry => (Role::Plain, "run again", None),
        Decision::Fail { reason } => (Role::Failure, "counts as failed", reason.as_deref()),
        Decision::Continue => (Role::Plain, "continue", None),
        Decision::Accept => (Role::Plain, "accepted", None),
    };
    let by = decided.by.as_ref().map(|by| format!(" by {by}")).unwrap_or_default();
    let reason = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
    let text = Text::new().add(role, word).plain(format!("{by}{reason}, "));
    text.plain(moment(decided.at))
}

fn attempt(attempt: &CallAttempt) -> Text {
    let text = Text::new().plain(format!("{}: ", attempt.attempt));
    let took = duration(Duration::from_micros(attempt.elapsed_micros.unwrap_or_default()));
    let text = match attempt.outcome {
        None => text.add(Role::Warning, "no end is recorded"),
        Some(CallVerdict::Succeeded) => text.add(Role::Success, "done").plain(format!(" in {took}")),
        Some(CallVerdict::Failed) => {
            text.add(Role::Failure, "failed").plain(format!(" after {took}, its changes were undone"))
        }
    };
    let text = text.plain(format!("; started {}", local(attempt.started_at)));
    if attempt.visible { text } else { text.add(Role::Dim, " (before a rewind)") }
}

/// Adds a value under a title. Texts of several lines are shown as they are, indented.
fn part(lines: &mut Vec<Text>, title: &str, value: &Value) {
    lines.extend([Text::new(), Text::new().add(Role::Heading, title)]);
    add_value(lines, value, "  ");
}

fn add_value(lines: &mut Vec<Text>, value: &Value, indent: &str) {
    match value {
        Value::Object(fields) if fields.is_empty() => lines.push(format!("{indent}none").into()),
        Value::Object(fields) => {
            for (name, value) in fields {
                match value {
                    Value::String(text) if text.contains('\n') => {
                        block(lines, &format!("{name}:"), indent);
                        block(lines, text, &format!("{indent}  "));
                    }
                    Value::String(text) => block(lines, &format!("{name}: {text}"), indent),
                    other => block(lines, &format!("{name}: {}", exact_json(other)), indent),
                }
            }
        }
        Value::String(text) => block(lines, text, indent),
        other => block(lines, &exact_json(other), indent),
    }
}

fn block(lines: &mut Vec<Text>, text: &str, indent: &str) {
    lines.extend(text.lines().map(|line| Text::from(format!("{indent}{line}"))));
}

fn output(lines: &mut Vec<Text>, report: &CallReport) {
    let Some(result) = &report.result else { return };
    lines.push(Text::new());
    if result.is_error {
        let kind = result.error_type.as_ref().map(|kind| format!(" ({kind})")).unwrap_or_default();
        lines.push(Text::new().add(Role::Failure, format!("error{kind}:")));
        block(lines, result.error_message.as_deref().unwrap_or("no message"), "  ");
        return;
    }
    lines.push(Text::new().add(Role::Heading, "output:"));
    match (result.result.inline(), &report.output) {
        (Some(value), _) => add_value(lines, value, "  "),
        (None, text) => block(lines, text.as_deref().unwrap_or_default(), "  "),
    }
    if !result.parts.is_empty() {
        lines.push(format!("  and {} parts with media or text", result.parts.len()).into());
    }
}

fn files(lines: &mut Vec<ReportLine>, report: &CallReport) {
    if report.files.is_empty() {
        return;
    }
    let title = if report.rolled_back {
        "files that it had changed (they were restored):"
    } else {
        "files that changed:"
    };
    lines.extend([Text::new(), Text::new().add(Role::Heading, title)].map(ReportLine::Text));
    lines.extend(report.files.iter().flat_map(change_lines));
}

/// Formats a time, with the distance from now.
fn moment(at: Timestamp) -> String {
    format!("{} ({})", local(at), relative(at, SystemClock::default().now()))
}
