//! Lines on standard error that are drawn again in place.

use super::style::{self, Text};
use super::{columns, output};

/// Lines at the end of what a terminal shows. They are replaced as a whole, and none of them is wider than the terminal.
#[derive(Debug, Default)]
pub(crate) struct RedrawnLines {
    rows: usize,
}

impl RedrawnLines {
    /// Replaces the lines that were drawn before.
    pub(crate) fn draw(&mut self, lines: &[Text]) {
        let mut text = self.removal();
        // A line that fills the last column would wrap on some terminals.
        let columns = columns().saturating_sub(1).max(1);
        for line in lines {
            line.clone().without_tabs().cut(columns).render(style::stderr_has_colors(), &mut text);
            text.push('\n');
        }
        self.rows = lines.len();
        output::stderr(text.as_bytes());
    }

    /// Removes the lines.
    pub(crate) fn clear(&mut self) {
        output::stderr(self.removal().as_bytes());
        self.rows = 0;
    }

    /// Returns the controls that move to the first line, and erase everything from there.
    fn removal(&self) -> String {
        match self.rows {
            0 => String::new(),
            rows => format!("\r\u{1b}[{rows}A\u{1b}[J"),
        }
    }
}
