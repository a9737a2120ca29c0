//! The line that a person types while the command works.
//!
//! It is drawn at the end of what the terminal shows, and erased before anything else is printed, so it is never part of what stays on the
//! screen. The terminal does not print what is typed meanwhile.

use std::io::{self, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};

use unicode_segmentation::UnicodeSegmentation as _;

use super::escape::safe_line;
use super::style::{Role, Text, stderr_has_colors};
use super::{columns, layout};

/// What stands before the draft.
const PROMPT: &str = "next> ";

/// Returns to the start of the line, and erases it.
const ERASE: &str = "\r\u{1b}[K";

/// Makes the terminal mark pasted text.
const MARK_PASTES: &str = "\u{1b}[?2004h";
const DO_NOT_MARK_PASTES: &str = "\u{1b}[?2004l";

/// Whether a draft is on the screen.
static IS_DRAWN: AtomicBool = AtomicBool::new(false);

/// Draws the draft in place of the one before. Of a long one, its end.
pub(crate) fn draw(draft: &str) {
    if draft.is_empty() {
        erase();
        return;
    }
    let room = columns().saturating_sub(PROMPT.len() + 1).max(1);
    let line = safe_line(draft).into_owned();
    let mut start = line.len();
    for (at, _) in line.grapheme_indices(true).rev() {
        if layout::width(&line[at..]) > room {
            break;
        }
        start = at;
    }
    let text = Text::new().add(Role::Dim, PROMPT).plain(&line[start..]).rendered(stderr_has_colors());
    IS_DRAWN.store(true, Ordering::SeqCst);
    print(&format!("{ERASE}{text}"));
}

/// Removes the draft from the screen.
pub(crate) fn erase() {
    if IS_DRAWN.swap(false, Ordering::SeqCst) {
        print(ERASE);
    }
}

/// Whether a draft is on the screen. The status line leaves it there.
pub(super) fn is_drawn() -> bool {
    IS_DRAWN.load(Ordering::SeqCst)
}

/// Prepares the terminal for drafts, or ends that.
pub(crate) fn mark_pastes(marks: bool) {
    print(if marks { MARK_PASTES } else { DO_NOT_MARK_PASTES });
}

fn print(text: &str) {
    // An error of stderr cannot be reported anywhere.
    let mut stderr = io::stderr().lock();
    let _ = stderr.write_all(text.as_bytes());
    let _ = stderr.flush();
}
