//! The report of a call, for people.

use std::time::Duration;

use backstitch::SystemClock;
use backstitch::budget::Amounts;
use backstitch::host::reason_word;
use backstitch::journal::{CallVerdict, Decision};
use backstitch::time::{Clock as _, Timestamp};
use serde_json::Value;

use super::super::diff::print_change;
use super::{Attempt, CallDecision, CallReport};
use crate::open::place::{OpenStore, short};
use crate::terminal::style::{Role, Text};
use crate::terminal::time::{local, relative};
use crate::terminal::{self, exact_json};

/// Prints the report, with the changes of files as diffs if `with_diff` is set.
pub(crate) fn print(place: &OpenStore, report: &CallReport, with_diff: bool) -> anyhow::Result<()> {
    let status = report.status();
    let role = match status {
        "ok" => Role::Success,
        "failed" => Role::Failure,
        _ => Role::Warning,
    };
    let heading = Text::new().add(Role::Heading, "call ").add(Role::Id, report.call.to_string()).plain("  ");
    let heading = heading.add(Role::Accent, &report.name).plain("  ").add(role, status);
    terminal::line(&if report.is_visible { heading } else { heading.add(Role::Dim, "  (before a rewind)") });
    for (name, value) in facts(report) {
        terminal::line(&Text::new().add(Role::Dim, format!("  {name:<10}")).join(value));
    }
    let asked = if report.edited.is_some() { "the model asked for:" } else { "arguments:" };
    part(asked, &report.asked);
    if let Some(edited) = &report.edited {
        part("what ran, with the arguments of the approval:", edited);
    }
    for (name, value) in &report.steps {
        part(&format!("step {name}:"), value);
    }
    output(report);
    files(place, report, with_diff)
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
    if let Some(child) = report.child {
        facts.push(("sub-agent", Text::new().add(Role::Id, short(child))));
    }
    let spent = cost(&report.charged);
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

fn attempt(attempt: &Attempt) -> Text {
    let text = Text::new().plain(format!("{}: ", attempt.number));
    let text = match &attempt.finished {
        None => text.add(Role::Warning, "no end is recorded"),
        Some((_, finished)) => {
            let took = duration(Duration::from_micros(finished.elapsed_micros));
            match finished.outcome {
                CallVerdict::Succeeded => text.add(Role::Success, "done").plain(format!(" in {took}")),
                CallVerdict::Failed => {
                    text.add(Role::Failure, "failed").plain(format!(" after {took}, its changes were undone"))
                }
            }
        }
    };
    let text = text.plain(format!("; started {}", local(attempt.started_at)));
    if attempt.is_visible { text } else { text.add(Role::Dim, " (before a rewind)") }
}

/// Prints a value under a title. Texts of several lines are printed as they are, indented.
fn part(title: &str, value: &Value) {
    println!();
    terminal::line(&Text::new().add(Role::Heading, title));
    print_value(value, "  ");
}

fn print_value(value: &Value, indent: &str) {
    match value {
        Value::Object(fields) if fields.is_empty() => println!("{indent}none"),
        Value::Object(fields) => {
            for (name, value) in fields {
                match value {
                    Value::String(text) if text.contains('\n') => {
                        println!("{indent}{name}:");
                        block(text, &format!("{indent}  "));
                    }
                    Value::String(text) => println!("{indent}{name}: {text}"),
                    other => block(&format!("{name}: {}", exact_json(other)), indent),
                }
            }
        }
        Value::String(text) => block(text, indent),
        other => block(&exact_json(other), indent),
    }
}

fn block(text: &str, indent: &str) {
    text.lines().for_each(|line| println!("{indent}{line}"));
}

fn output(report: &CallReport) {
    let Some(result) = &report.result else { return };
    println!();
    if result.is_error {
        let kind = result.error_type.as_ref().map(|kind| format!(" ({kind})")).unwrap_or_default();
        terminal::line(&Text::new().add(Role::Failure, format!("error{kind}:")));
        block(result.error_message.as_deref().unwrap_or("no message"), "  ");
        return;
    }
    terminal::line(&Text::new().add(Role::Heading, "output:"));
    match (result.result.inline(), &report.output) {
        (Some(value), _) => print_value(value, "  "),
        (None, text) => block(text.as_deref().unwrap_or_default(), "  "),
    }
    if !result.parts.is_empty() {
        println!("  and {} parts with media or text", result.parts.len());
    }
}

fn files(place: &OpenStore, report: &CallReport, with_diff: bool) -> anyhow::Result<()> {
    let Some((before, after)) = report.roots.filter(|_| !report.files.is_empty()) else { return Ok(()) };
    println!();
    let title = if report.is_rolled_back() {
        "files that it had changed (they were restored):"
    } else {
        "files that changed:"
    };
    terminal::line(&Text::new().add(Role::Heading, title));
    for change in &report.files {
        print_change(place, Some(before), Some(after), change, with_diff)?;
    }
    Ok(())
}

/// Formats a time, with the distance from now.
fn moment(at: Timestamp) -> String {
    format!("{} ({})", local(at), relative(at, SystemClock::default().now()))
}

/// Formats tokens and money; empty if there are none.
pub(crate) fn cost(amounts: &Amounts) -> String {
    let mut parts = Vec::new();
    if amounts.total_tokens() > 0 {
        parts.push(format!("{} tokens", amounts.total_tokens()));
    }
    if amounts.money_micros > 0 {
        parts.push(money(amounts.money_micros));
    }
    parts.join(", ")
}

/// Formats millionths of the unit of the prices.
pub(crate) fn money(micros: u64) -> String {
    let text = format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000);
    let shortest = text.find('.').map_or(text.len(), |point| point + 3);
    let end = text.trim_end_matches('0').len().max(shortest);
    text[..end].to_owned()
}

/// Formats a length of time with a fitting unit.
pub(crate) fn duration(took: Duration) -> String {
    match took.as_secs() {
        0 => format!("{} ms", took.as_millis()),
        seconds @ 1..60 => format!("{seconds}.{} s", took.subsec_millis() / 100),
        seconds @ 60..3_600 => format!("{} min {} s", seconds / 60, seconds % 60),
        seconds => format!("{} h {} min", seconds / 3_600, seconds / 60 % 60),
    }
}
