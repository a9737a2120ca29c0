//! Where the lines of a block stand: in quotes and items of lists, and in paragraphs, which are wrapped beside them.

use super::super::super::style::{Role, Text};
use super::super::super::wrap::Wrapper;
use super::super::Look;
use super::Renderer;

/// What a line stands in.
pub(super) enum Container {
    Quote,
    Item {
        /// What is printed before the first line of the item, until it is.
        marker: Option<String>,
        width: usize,
    },
}

impl Renderer<'_> {
    pub(super) fn open_paragraph(&mut self) {
        if self.wrapper.is_none() {
            let (first, rest) = self.prefixes();
            self.block.indent = rest.width();
            self.wrapper = Some(Wrapper::new(self.setting.columns, first, rest));
        }
    }

    pub(super) fn end_paragraph(&mut self) {
        if let Some(wrapper) = self.wrapper.take() {
            self.block.column = wrapper.column();
            self.block.lines.extend(wrapper.finish());
        }
    }

    /// Ends what is open before a block, and prints the empty line before it, if the source has one.
    pub(super) fn begin_block(&mut self, start: usize) {
        self.end_paragraph();
        let gap = self.source.get(self.end..start).unwrap_or_default();
        // The first line of an item is the line of its marker.
        let is_marked = matches!(self.containers.last(), Some(Container::Item { marker: Some(_), .. }));
        if !self.block.lines.is_empty() && !is_marked && gap.matches('\n').count() > 1 {
            let (_, rest) = self.prefixes();
            self.block.lines.push(rest.trimmed());
        }
        self.end = self.end.max(start);
    }

    /// Returns what the next line begins with, and the lines after it. The markers of items are printed once.
    pub(super) fn prefixes(&mut self) -> (Text, Text) {
        let (mut first, mut rest) = (Text::new(), Text::new());
        let bar = if self.setting.look == Look::Colors { "│ " } else { "> " };
        for container in &mut self.containers {
            match container {
                Container::Quote => {
                    first.push(Role::Dim, bar);
                    rest.push(Role::Dim, bar);
                }
                Container::Item { marker, width } => {
                    first = match marker.take() {
                        Some(marker) => first.plain(marker),
                        None => first.spaces(*width),
                    };
                    rest = rest.spaces(*width);
                }
            }
        }
        (first, rest)
    }

    /// The columns beside the prefix of a line.
    pub(super) fn room(&self) -> usize {
        let taken: usize = self
            .containers
            .iter()
            .map(|container| match container {
                Container::Quote => 2,
                Container::Item { width, .. } => *width,
            })
            .sum();
        self.setting.columns.saturating_sub(taken)
    }
}
