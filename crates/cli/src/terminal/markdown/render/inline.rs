//! Text inside of paragraphs and cells: emphasis, links, and the roles of their pieces.

use std::ops::Range;

use super::super::super::style::Role;
use super::super::Look;
use super::super::mark::open_mark;
use super::Renderer;

impl Renderer<'_> {
    pub(super) fn start_emphasis(&mut self, role: Role, mark: &str) {
        // A heading is bold already.
        let role = if self.role() == Role::Heading { Role::Heading } else { role };
        self.roles.push(role);
        if self.setting.look == Look::Marks {
            self.push(role, mark, false);
        }
    }

    pub(super) fn end_emphasis(&mut self, mark: &str) {
        if self.setting.look == Look::Marks {
            self.push(self.role(), mark, false);
        }
        self.roles.pop();
    }

    /// Prints the address of a link, unless its text is the address.
    pub(super) fn end_link(&mut self) {
        let Some((address, text)) = self.links.pop() else { return };
        let is_known = text == address || address.strip_prefix("mailto:") == Some(&*text);
        if !is_known && !address.is_empty() {
            let gap = if text.is_empty() { "" } else { " " };
            self.push(Role::Plain, gap, false);
            self.push(Role::Dim, &format!("({address})"), false);
        }
    }

    pub(super) fn text(&mut self, text: &str, range: Range<usize>) {
        if let Some((_, code)) = &mut self.code {
            code.push_str(text);
            return;
        }
        let is_exact = self.source.get(range.clone()) == Some(text);
        let open =
            if self.setting.is_whole || !is_exact { None } else { open_mark(self.source, range.clone()) };
        let start = self.skipped.saturating_sub(range.start).min(text.len());
        self.skipped -= start;
        let end = open.map_or(text.len(), |open| (open - range.start).max(start));
        self.push(self.role(), text.get(start..end).unwrap_or_default(), false);
        self.block.is_waiting |= open.is_some();
    }

    pub(super) fn role(&self) -> Role {
        self.roles.last().copied().unwrap_or(Role::Plain)
    }

    /// Adds text to the paragraph, or to the cell of a table.
    pub(super) fn push(&mut self, role: Role, text: &str, is_whole: bool) {
        if let Some((_, inner)) = self.links.last_mut() {
            inner.push_str(text);
        }
        if let Some(grid) = &mut self.grid {
            if let Some(cell) = grid.rows.last_mut().and_then(|row| row.last_mut()) {
                cell.0.push((role, text.to_owned(), is_whole));
            }
            return;
        }
        // The text of a tight item has no paragraph.
        self.open_paragraph();
        if let Some(wrapper) = &mut self.wrapper {
            if is_whole { wrapper.push_whole(role, text) } else { wrapper.push(role, text) }
        }
    }
}

/// The address of a link, with its title.
pub(super) fn address_of(address: &str, title: &str) -> String {
    let title = title.replace('\n', " ");
    if title.is_empty() { address.to_owned() } else { format!("{address} \"{title}\"") }
}
