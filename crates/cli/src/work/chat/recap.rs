//! What is printed when a conversation is continued: its last message and answer.

use backstitch::journal::Role;
use backstitch::view::JournalView;

/// Number of lines of each text that are shown.
const MOST_LINES: usize = 12;

/// Returns the last message of the user and the last answer, cut to a few lines.
pub(super) fn recap(view: &JournalView) -> Vec<String> {
    let Some(latest) = view.latest_evaluation() else { return Vec::new() };
    let Ok(messages) = view.messages_of(latest.evaluation_id) else { return Vec::new() };
    let last = |role: Role| {
        let mut candidates = messages.iter().rev().filter(|message| message.role() == role);
        candidates
            .find(|message| message.message.option_call().is_none() && !message.content().trim().is_empty())
    };
    let mut lines = Vec::new();
    if let Some(mission) = last(Role::User) {
        lines.extend(beginning(&mission.content()).into_iter().map(|line| format!("> {line}")));
    }
    if let Some(answer) = last(Role::Assistant) {
        lines.extend(beginning(&answer.content()));
    }
    lines
}

fn beginning(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = text.trim().lines().take(MOST_LINES).map(str::to_owned).collect();
    let more = text.trim().lines().count().saturating_sub(MOST_LINES);
    if more > 0 {
        lines.push(format!("… {more} more {}", if more == 1 { "line" } else { "lines" }));
    }
    lines
}
