//! The turns of agents that answer with programs, in full.

use anyhow::Context as _;
use backstitch::ports::Store as _;
use backstitch::repl::{CallOutcome, Excerpt, Turn, TurnSignal};
use backstitch::view::JournalView;

use super::place::{Place, short};

/// The turns of a session, of all of its evaluations.
pub(super) async fn of(place: &Place, view: &JournalView) -> anyhow::Result<Vec<Turn>> {
    let mut turns = Vec::new();
    for finished in view.evaluations().flat_map(|evaluation| evaluation.finished_turns.iter()) {
        let data = match finished.data_object {
            Some(large) => {
                let object = place.store.object(large.object).await?;
                serde_json::from_slice(object.context("a turn is missing from the store")?.bytes())?
            }
            None => finished.data.clone(),
        };
        turns.push(serde_json::from_value(data).context("a turn cannot be read")?);
    }
    Ok(turns)
}

/// Prints turns for a person.
pub(super) fn print(turns: &[Turn]) {
    if turns.is_empty() {
        println!("there are no turns: only agents that answer with programs have them");
    }
    for turn in turns {
        let how = match (&turn.error, turn.signal) {
            (Some(error), _) => format!("failed ({})", error.kind),
            (None, Some(TurnSignal::Return)) => "returned".to_owned(),
            (None, Some(TurnSignal::Fail)) => "gave up".to_owned(),
            (None, None) => "ok".to_owned(),
        };
        println!("turn {}: {how}", turn.number);
        indented(turn.program.as_deref().unwrap_or(&turn.answer), "    ");
        for call in &turn.tool_calls {
            let outcome = match &call.outcome {
                CallOutcome::Result(result) => format!("-> {}", text_of(result)),
                CallOutcome::Error(message) => format!("failed: {message}"),
                CallOutcome::Open => "has no result".to_owned(),
            };
            println!("  call {} {} [{}] {outcome}", call.name, text_of(&call.arguments), short(call.call_id));
        }
        turn.prints.iter().for_each(|printed| indented(printed, "  | "));
        if let Some(error) = &turn.error {
            indented(&error.message, "  ! ");
        }
        if let Some(result) = &turn.result {
            indented(&text_of(result), "  = ");
        }
    }
}

fn text_of(excerpt: &Excerpt) -> String {
    match excerpt {
        Excerpt::Whole(json) => json.to_string(),
        Excerpt::Sample { text, label } => format!("{text} ({label})"),
    }
}

fn indented(text: &str, before: &str) {
    text.lines().for_each(|line| println!("{before}{line}"));
}
