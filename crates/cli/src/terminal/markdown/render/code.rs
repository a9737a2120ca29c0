//! Code in a block: its lines with their colours, between the lines of its fence.

use std::ops::Range;

use super::super::super::style::{Role, Text};
use super::super::Look;
use super::super::highlight::Highlighter;
use super::Renderer;

/// Spaces before code that has no fence.
const CODE_INDENT: usize = 4;

impl Renderer<'_> {
    pub(super) fn end_code(&mut self, range: &Range<usize>) {
        let Some((language, code)) = self.code.take() else { return };
        let source = self.source.get(range.clone()).unwrap_or_default();
        let (_, last) = source.trim_end().rsplit_once('\n').unwrap_or_default();
        let marks = last.trim_start_matches([' ', '>']);
        let is_closed = marks.len() >= 3 && marks.trim_start_matches(['`', '~']).is_empty();
        let is_open = self.is_at_end(range) && !(language.is_some() && is_closed);
        let mut highlighter = Highlighter::new(language.as_deref().unwrap_or_default());
        let mut lines = Vec::new();
        if let Some(language) = language.as_deref().filter(|_| !is_open || source.contains('\n')) {
            lines.push(opening_line(language, self.setting.look));
        }
        let complete = match code.rsplit_once('\n') {
            Some((complete, _)) if is_open => complete,
            None if is_open => "",
            _ => code.strip_suffix('\n').unwrap_or(&code),
        };
        if !complete.is_empty() || !(is_open || code.is_empty()) {
            let indent = if language.is_some() { 0 } else { CODE_INDENT };
            let line = |line: &str| Text::new().spaces(indent).join(highlighter.line(line));
            lines.extend(complete.split('\n').map(line));
        }
        if language.is_some() && !is_open {
            lines.push(closing_line(self.setting.look));
        }
        for line in lines {
            let (first, _) = self.prefixes();
            self.block.lines.push(first.join(line));
        }
        self.block.is_waiting |= is_open;
    }
}

/// The line before code.
pub(in super::super) fn opening_line(language: &str, look: Look) -> Text {
    match (look, language.trim()) {
        (Look::Words, "") => "Code:".into(),
        (Look::Words, language) => format!("Code, {language}:").into(),
        (_, language) => Text::new().add(Role::Dim, format!("```{language}")),
    }
}

/// The line after code.
pub(in super::super) fn closing_line(look: Look) -> Text {
    if look == Look::Words { "End of code.".into() } else { Text::new().add(Role::Dim, "```") }
}
