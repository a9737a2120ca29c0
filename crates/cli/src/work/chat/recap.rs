//! What is shown of a conversation: its last turn, and how full the context window of the model is.

use backstitch::host::{message_text, readable_message};
use backstitch::journal::Role;
use backstitch::ports::Store;
use backstitch::view::{JournalView, Request};

/// Number of lines of each text that are shown.
const MOST_LINES: usize = 12;

/// Returns the last message of the user and the last answer, cut to a few lines.
pub(super) async fn recap(store: &dyn Store, view: &JournalView) -> anyhow::Result<Vec<String>> {
    let Some(latest) = view.latest_evaluation() else { return Ok(Vec::new()) };
    let Ok(messages) = view.messages_of(latest.evaluation_id) else { return Ok(Vec::new()) };
    let last = |role: Role| {
        let mut candidates = messages.iter().rev().filter(|message| message.role() == role);
        candidates.find(|message| {
            message.message.option_call().is_none() && !message_text(message).trim().is_empty()
        })
    };
    let mut lines = Vec::new();
    if let Some(mission) = last(Role::User) {
        let mission = message_text(&*readable_message(store, mission).await?);
        lines.extend(beginning(&mission).into_iter().map(|line| format!("> {line}")));
    }
    if let Some(answer) = last(Role::Assistant) {
        lines.extend(beginning(&message_text(&*readable_message(store, answer).await?)));
    }
    Ok(lines)
}

fn beginning(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = text.trim().lines().take(MOST_LINES).map(str::to_owned).collect();
    let more = text.trim().lines().count().saturating_sub(MOST_LINES);
    if more > 0 {
        lines.push(format!("… {more} more {}", if more == 1 { "line" } else { "lines" }));
    }
    lines
}

/// Describes the latest request: its part of the window, and whether it was shortened.
pub(super) fn context(view: &JournalView, window: Option<u64>) -> Option<String> {
    let requests = view.evaluations().flat_map(|evaluation| evaluation.requests.iter());
    let of_answers = requests.filter(|request| request.finished.is_some() && !is_for_summary(request));
    let latest = of_answers.last()?;
    let used = latest.finished.as_ref().map(|finished| finished.record.usage.total_tokens())?;
    let renderer = latest.started.record.renderer.as_deref();
    let is_shortened = renderer.is_some_and(is_shortened);
    let share = window.filter(|window| *window > 0 && used > 0);
    let share = share.map(|window| format!("context {} %", used.saturating_mul(100).div_ceil(window)));
    match (share, is_shortened) {
        (share, false) => share,
        (Some(share), true) => Some(format!("{share}, older results not shown")),
        (None, true) => Some("older results not shown".to_owned()),
    }
}

/// Whether a renderer leaves something out.
fn is_shortened(renderer: &str) -> bool {
    ["elide/", "trim/", "cut/", "summary/"].iter().any(|name| renderer.contains(name))
}

/// Whether a request asked for a summary of the conversation.
fn is_for_summary(request: &Request) -> bool {
    request.started.record.renderer.as_deref().is_some_and(|renderer| renderer.contains("summarize/"))
}
