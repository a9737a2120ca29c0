//! The reasoning of a model, for people who ask for it.

use std::sync::atomic::{AtomicBool, Ordering};

use super::{Role, ScreenState, Text};
use crate::terminal;

static IS_SHOWN: AtomicBool = AtomicBool::new(false);

/// Shows reasoning from now on, or no longer.
pub(crate) fn show(is_shown: bool) {
    IS_SHOWN.store(is_shown, Ordering::Relaxed);
}

/// Whether reasoning is shown.
pub(crate) fn is_shown() -> bool {
    IS_SHOWN.load(Ordering::Relaxed)
}

/// Prints the complete lines of reasoning that arrives in pieces.
pub(super) fn add(state: &mut ScreenState, text: &str) {
    state.reasoning.push_str(text);
    if let Some(end) = state.reasoning.rfind('\n') {
        let rest = state.reasoning.split_off(end + 1);
        let lines = std::mem::replace(&mut state.reasoning, rest);
        lines.lines().for_each(print_line);
    }
}

/// Prints the line that has not ended.
pub(super) fn end_line(state: &mut ScreenState) {
    if !state.reasoning.is_empty() {
        std::mem::take(&mut state.reasoning).lines().for_each(print_line);
    }
}

fn print_line(line: &str) {
    terminal::error_line(&Text::new().add(Role::Dim, line));
}
