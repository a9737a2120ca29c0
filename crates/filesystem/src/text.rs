//! Files as text, in windows of lines.

use backstitch_core::ports::{Filesystem, FilesystemError};
use serde::{Deserialize, Serialize};

use super::FilePath;

/// A file's path and text.
#[derive(Debug, Clone, Copy)]
pub(super) struct TextFile<'a> {
    pub(super) path: &'a FilePath,
    pub(super) text: &'a str,
}

/// A range of lines to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LineWindow {
    /// Number of lines to skip.
    pub offset: usize,
    /// Maximum number of lines to return.
    pub limit: usize,
}

impl Default for LineWindow {
    /// The first 2,000 lines.
    fn default() -> Self {
        Self { offset: 0, limit: 2_000 }
    }
}

/// A range of lines of a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextWindow {
    /// The lines with their terminators, byte for byte as in the file.
    pub text: String,
    /// Number of the first line, from 1.
    pub first_line: usize,
    /// Number of lines in `text`.
    pub lines: usize,
    /// Number of lines in the file.
    pub total_lines: usize,
    /// True if more lines follow.
    pub truncated: bool,
}

pub(super) fn read_text<F: Filesystem + ?Sized>(
    filesystem: &F,
    path: &FilePath,
) -> Result<String, FilesystemError> {
    String::from_utf8(filesystem.read_bytes(path)?)
        .map_err(|_| FilesystemError::NotText { path: path.to_string() })
}

pub(super) fn window(text: &str, window: LineWindow) -> TextWindow {
    let (mut given, mut lines, mut total_lines) = (0..0, 0, 0);
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let end = at + line.len();
        if total_lines >= window.offset && lines < window.limit {
            if lines == 0 {
                given.start = at;
            }
            given.end = end;
            lines += 1;
        }
        total_lines += 1;
        at = end;
    }
    TextWindow {
        text: text[given].to_owned(),
        first_line: window.offset.saturating_add(1),
        lines,
        total_lines,
        truncated: window.offset.saturating_add(lines) < total_lines,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, offset: usize, limit: usize) -> (String, usize, usize, usize, bool) {
        let TextWindow { text, first_line, lines, total_lines, truncated } =
            window(text, LineWindow { offset, limit });
        (text, first_line, lines, total_lines, truncated)
    }

    #[test]
    fn windows_are_slices_of_lines() {
        assert_eq!(shown("", 0, 5), (String::new(), 1, 0, 0, false));
        assert_eq!(shown("a\nb\r\nc", 0, 5), ("a\nb\r\nc".to_owned(), 1, 3, 3, false));
        assert_eq!(shown("a\nb\r\nc", 1, 1), ("b\r\n".to_owned(), 2, 1, 3, true));
        assert_eq!(shown("a\nb\n", 1, 1), ("b\n".to_owned(), 2, 1, 2, false));
        assert_eq!(shown("a\nb\n", 2, 1), (String::new(), 3, 0, 2, false));
        assert_eq!(shown("a\nb\n", 0, 0), (String::new(), 1, 0, 2, true));
        assert_eq!(shown("a", usize::MAX, usize::MAX), (String::new(), usize::MAX, 0, 1, false));
    }

    #[test]
    fn without_a_word_it_is_two_thousand_lines() {
        let read = window(&"line\n".repeat(2_001), LineWindow::default());
        assert_eq!((read.lines, read.total_lines, read.truncated), (2_000, 2_001, true));
    }
}
