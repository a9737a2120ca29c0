//! The status line: a line that moves while the command works.
//!
//! It is drawn on standard error where that is a terminal that can erase a line, and is erased before anything else is printed. So it is never part of what
//! stays on the screen, and never in a pipe. Nothing is drawn for screen readers, while a person is asked something, and in the place of what a person types.

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::style::{Text, stderr_has_colors};

/// Returns to the start of the line, and erases it.
const ERASE: &str = "\r\u{1b}[K";

static STATE: Mutex<StatusState> =
    Mutex::new(StatusState { works: 0, questions: 0, writers: 0, is_drawn: false });

struct StatusState {
    /// What is being worked at.
    works: usize,
    /// Questions that a person is asked.
    questions: usize,
    /// Threads that print.
    writers: usize,
    is_drawn: bool,
}

fn state() -> MutexGuard<'static, StatusState> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl StatusState {
    fn erase(&mut self) {
        if std::mem::take(&mut self.is_drawn) {
            // An error of stderr cannot be reported anywhere.
            let _ = io::stderr().lock().write_all(ERASE.as_bytes());
        }
    }
}

/// Whether a status line can be drawn here.
pub(crate) fn can_draw() -> bool {
    io::stderr().is_terminal() && super::is_capable() && !super::is_plain() && !super::is_quiet()
}

/// A part of the work: the status line is drawn as long as one exists.
#[must_use]
pub(crate) struct StatusGuard(());

/// Allows to draw the status line.
pub(crate) fn begin() -> StatusGuard {
    state().works += 1;
    StatusGuard(())
}

impl Drop for StatusGuard {
    fn drop(&mut self) {
        let mut state = state();
        state.works = state.works.saturating_sub(1);
        state.erase();
    }
}

/// A question: the status line is not drawn as long as one exists.
#[must_use]
pub(crate) struct QuestionGuard(());

/// Keeps the status line away from a question.
pub(crate) fn ask() -> QuestionGuard {
    let mut state = state();
    state.questions += 1;
    state.erase();
    QuestionGuard(())
}

impl Drop for QuestionGuard {
    fn drop(&mut self) {
        let mut state = state();
        state.questions = state.questions.saturating_sub(1);
    }
}

/// Draws the status line, in the place of the one before. An output that is stopped does not block this.
pub(crate) fn draw(text: &Text) {
    let Ok(mut state) = STATE.try_lock() else { return };
    if state.works == 0 || state.questions > 0 || state.writers > 0 || super::draft::is_drawn() {
        return;
    }
    // A line that fills the last column would wrap.
    let text = text.cut(super::columns().saturating_sub(1)).rendered(stderr_has_colors());
    state.is_drawn = true;
    let mut stderr = io::stderr().lock();
    let _ = stderr.write_all(format!("{ERASE}{text}").as_bytes());
}

/// A thread that prints: the status line is erased before, and not drawn meanwhile.
pub(super) struct PrintGuard(());

pub(super) fn print() -> PrintGuard {
    let mut state = state();
    state.writers += 1;
    state.erase();
    PrintGuard(())
}

impl Drop for PrintGuard {
    fn drop(&mut self) {
        let mut state = state();
        state.writers = state.writers.saturating_sub(1);
    }
}
