//! Texts of recalled turns, calls and messages.

use std::collections::HashSet;
use std::sync::Arc;

use backstitch_core::id::CallId;
use backstitch_core::journal::{InnerMessage, Role};
use backstitch_core::message::Content;
use serde_json::Value as Json;

use crate::mission::without_firewalled;
use crate::text::{collapsed, cut};
use crate::turn::{Excerpt, Turn, TurnCall, TurnCallOutcome};

/// The maximum number of characters of a text in an overview line.
const LINE: usize = 80;

/// A turn of a Lisp agent, in full.
pub(super) fn of_turn(turn: &Turn) -> String {
    let mut parts = vec![format!("Turn {}", turn.number), turn.answer.clone()];
    if let Some(error) = &turn.error {
        parts.push(format!("Error: {}", error.message));
    }
    parts.extend(turn.tool_calls.iter().map(of_call));
    if !turn.prints.is_empty() {
        parts.push(format!("Output:\n{}", turn.prints.join("\n")));
    }
    if let Some(result) = &turn.result {
        parts.push(format!("Result: {}", of_excerpt(result)));
    }
    parts.join("\n\n")
}

/// The overview line of a turn of a Lisp agent.
pub(super) fn line_of_turn(turn: &Turn) -> String {
    let mut line = format!("Turn {}: ", turn.number);
    match &turn.error {
        Some(error) => line.push_str(&format!("failed: {}", beginning(&error.message))),
        None => line.push_str(&beginning(turn.program.as_deref().unwrap_or(&turn.answer))),
    }
    if !turn.prints.is_empty() {
        line.push_str(&format!("; {}", counted(turn.prints.len(), "print")));
    }
    line.push_str(&calls_of(turn.tool_calls.iter().map(|call| call.name.as_str())));
    line
}

/// A call that a program made, as recorded in its turn.
pub(super) fn of_call(call: &TurnCall) -> String {
    let outcome = match &call.outcome {
        TurnCallOutcome::Result(result) => of_excerpt(result),
        TurnCallOutcome::Error(message) => format!("Error: {message}"),
        TurnCallOutcome::Open => "(no result)".to_owned(),
    };
    format!("Call {} of {}\n{}\n{outcome}", call.call_id, call.name, of_excerpt(&call.arguments))
}

fn of_excerpt(excerpt: &Excerpt) -> String {
    match excerpt {
        Excerpt::Whole(json) => json.to_string(),
        Excerpt::Sample { text, .. } => text.clone(),
    }
}

/// A message of a transcript, in full. Calls by programs are shown without firewalled fields.
pub(super) fn of_message(message: &InnerMessage, by_programs: &HashSet<CallId>) -> String {
    if let Some(call) = message.message.option_call() {
        let arguments = match call.arguments.object() {
            Some(arguments) if by_programs.contains(&call.invocation_id) => {
                without_firewalled(&Json::Object(arguments.clone())).to_string()
            }
            _ => call.arguments.text().to_string(),
        };
        return format!("Call {} of {}\n{arguments}", call.invocation_id, call.option_name);
    }
    match message.role() {
        Role::System => format!("System:\n{}", message.content()),
        Role::User => format!("User:\n{}", message.content()),
        Role::Assistant => format!("Assistant:\n{}", message.content()),
        Role::Tool => match message.message.option_result() {
            Some(result) => {
                let id = result.invocation_id;
                let open = result.result.inline().filter(|json| !json.is_string());
                match open.filter(|_| by_programs.contains(&id) && !result.is_error) {
                    Some(json) => format!("Result of call {id}\n{}", without_firewalled(json)),
                    None => format!("Result of call {id}\n{}", message.content()),
                }
            }
            None => message.content(),
        },
    }
}

/// The overview line of the messages of one turn, each with the number of that turn.
pub(super) fn line_of_answer(numbered: &[(u64, &Arc<InnerMessage>)]) -> String {
    let number = numbered.first().map_or(0, |(number, _)| *number);
    let messages = || numbered.iter().map(|(_, message)| *message);
    let text_message = messages().find(|message| matches!(message.message.content, Content::Parts(_)));
    let calls = messages().filter_map(|message| message.message.option_call());
    format!(
        "Turn {number}: {}{}",
        text_message.map(|message| beginning(&message.content())).unwrap_or_default(),
        calls_of(calls.map(|call| call.option_name.as_str()))
    )
}

/// The called tools with their numbers of calls, in the order of the first calls.
fn calls_of<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let mut counted: Vec<(&str, usize)> = Vec::new();
    for name in names {
        match counted.iter_mut().find(|(known, _)| *known == name) {
            Some((_, count)) => *count += 1,
            None => counted.push((name, 1)),
        }
    }
    let calls = counted.iter().map(|(name, count)| match count {
        1 => (*name).to_owned(),
        count => format!("{name} ({count} times)"),
    });
    match calls.collect::<Vec<_>>() {
        calls if calls.is_empty() => String::new(),
        calls => format!("; calls: {}", calls.join(", ")),
    }
}

fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

/// The beginning of a text, on one line.
fn beginning(text: &str) -> String {
    cut(&collapsed(text), LINE).into_owned()
}
