//! How much of the model's context window a conversation takes.

use backstitch::view::JournalView;

/// Describes the latest request: its part of the window, and whether it was shortened.
pub(super) fn context(view: &JournalView, window: Option<u64>) -> Option<String> {
    let requests = view.evaluations().flat_map(|evaluation| evaluation.requests.iter());
    let latest = requests.filter(|request| request.finished.is_some()).last()?;
    let used = latest.finished.as_ref().map(|finished| finished.record.usage.total_tokens())?;
    let is_shortened = latest.started.record.renderer.as_deref().is_some_and(is_shortened);
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
    renderer.contains("elide/") || renderer.contains("trim/")
}
