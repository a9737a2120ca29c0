//! Tables of Markdown, laid out for a width.
//!
//! A table that is wider than the terminal gets narrower columns, whose cells have several lines. Where even that has no room, and for screen readers, each row is
//! a record: a line for each cell, with the name of its column.

use pulldown_cmark::Alignment;

use super::super::style::{Role, Text};
use super::super::wrap::Wrapper;
use super::Look;

/// Spaces between two columns.
const GAP: usize = 2;

/// The fewest columns of a cell that is broken into lines.
const NARROWEST: usize = 10;

/// A cell: its spans, and whether each may be broken.
#[derive(Debug, Clone, Default)]
pub(super) struct GridCell(pub(super) Vec<(Role, String, bool)>);

impl GridCell {
    fn lines(&self, columns: usize) -> Vec<Text> {
        self.behind(columns, Text::new(), Text::new())
    }

    fn behind(&self, columns: usize, first: Text, indent: Text) -> Vec<Text> {
        let mut wrapper = Wrapper::new(columns, first, indent);
        for (role, text, is_whole) in &self.0 {
            if *is_whole { wrapper.push_whole(*role, text) } else { wrapper.push(*role, text) }
        }
        wrapper.finish()
    }

    fn width(&self) -> usize {
        self.lines(usize::MAX / 4).iter().map(Text::width).max().unwrap_or_default()
    }

    fn longest_word(&self) -> usize {
        self.lines(1).iter().map(Text::width).max().unwrap_or_default()
    }
}

/// A table: its header is the first row.
#[derive(Debug, Default)]
pub(super) struct Grid {
    pub(super) alignments: Vec<Alignment>,
    pub(super) rows: Vec<Vec<GridCell>>,
}

impl Grid {
    /// Returns the lines of the table.
    pub(super) fn lines(&self, columns: usize, look: Look) -> Vec<Text> {
        match self.widths(columns).filter(|_| look != Look::Words) {
            Some(widths) => self.aligned(&widths),
            None => self.records(columns),
        }
    }

    fn column(&self, column: usize) -> impl Iterator<Item = &GridCell> {
        self.rows.iter().filter_map(move |row| row.get(column))
    }

    /// The widths of the columns; `None` if there is no room for them.
    fn widths(&self, columns: usize) -> Option<Vec<usize>> {
        let count = self.rows.first().map_or(0, Vec::len);
        let most = |of: fn(&GridCell) -> usize| -> Vec<usize> {
            (0..count).map(|column| self.column(column).map(of).max().unwrap_or_default()).collect()
        };
        let natural = most(GridCell::width);
        let gaps = GAP * count.saturating_sub(1);
        let room = columns.checked_sub(gaps)?;
        if natural.iter().sum::<usize>() <= room {
            return Some(natural);
        }
        let words = most(GridCell::longest_word);
        let least: Vec<usize> =
            natural.iter().zip(&words).map(|(natural, word)| (*word).max(NARROWEST.min(*natural))).collect();
        let mut left = room.checked_sub(least.iter().sum())?;
        // The columns that lack the least get what they lack first.
        let mut widths = least;
        let mut wanting: Vec<usize> = (0..count).collect();
        wanting.sort_by_key(|column| natural[*column] - widths[*column]);
        for (place, column) in wanting.iter().enumerate() {
            let share = left / (count - place);
            let more = share.min(natural[*column] - widths[*column]);
            widths[*column] += more;
            left -= more;
        }
        Some(widths)
    }

    fn aligned(&self, widths: &[usize]) -> Vec<Text> {
        let mut lines = Vec::new();
        for (number, row) in self.rows.iter().enumerate() {
            let cells: Vec<Vec<Text>> =
                row.iter().zip(widths).map(|(cell, width)| cell.lines(*width)).collect();
            for place in 0..cells.iter().map(Vec::len).max().unwrap_or_default() {
                let mut line = Text::new();
                for (column, (cell, width)) in cells.iter().zip(widths).enumerate() {
                    let part = cell.get(place).cloned().unwrap_or_default();
                    let padding = width.saturating_sub(part.width());
                    let before = match self.alignments.get(column) {
                        Some(Alignment::Right) => padding,
                        Some(Alignment::Center) => padding / 2,
                        _ => 0,
                    };
                    let gap = if column == 0 { 0 } else { GAP };
                    line = line.spaces(gap + before).join(part).spaces(padding - before);
                }
                lines.push(line.trimmed());
            }
            if number == 0 {
                let rules: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
                lines.push(Text::new().add(Role::Dim, rules.join(&" ".repeat(GAP))));
            }
        }
        lines
    }

    /// Returns a line for each cell that is not empty, with the name of its column, and an empty line between rows.
    fn records(&self, columns: usize) -> Vec<Text> {
        let Some((header, rows)) = self.rows.split_first() else { return Vec::new() };
        // A name that is wider than a line is not repeated in each row.
        let is_long: Vec<bool> =
            header.iter().map(|name| !rows.is_empty() && name.width() > columns).collect();
        let long = header.iter().zip(&is_long).filter(|(_, is_long)| **is_long);
        let mut lines: Vec<Text> = long.flat_map(|(name, _)| name.lines(columns)).collect();
        let names: Vec<GridCell> = header
            .iter()
            .zip(&is_long)
            .map(|(name, is_long)| if *is_long { GridCell::default() } else { name.clone() })
            .collect();
        for row in rows {
            if !lines.is_empty() {
                lines.push(Text::new());
            }
            for (name, cell) in names.iter().zip(row).filter(|(_, cell)| !cell.0.is_empty()) {
                let mut named = name.clone();
                if !named.0.is_empty() {
                    named.0.push((Role::Plain, ": ".to_owned(), false));
                }
                named.0.extend(cell.0.iter().cloned());
                lines.extend(named.behind(columns, Text::new(), Text::new().spaces(GAP)));
            }
        }
        if rows.is_empty() {
            lines.extend(header.iter().flat_map(|name| name.lines(columns)));
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_wider_than_a_line_is_printed_once() {
        let cell = |text: &str| GridCell(vec![(Role::Plain, text.to_owned(), false)]);
        let rows = vec![
            vec![cell(&"x".repeat(90)), cell("b")],
            vec![cell("1"), cell("2")],
            vec![cell("3"), cell("4")],
        ];
        let grid = Grid { alignments: Vec::new(), rows };
        let lines: Vec<String> = grid.lines(20, Look::Words).iter().map(Text::text).collect();
        assert_eq!(lines.concat().matches('x').count(), 90);
        assert!(lines.ends_with(&["1", "b: 2", "", "3", "b: 4"].map(str::to_owned)), "{lines:?}");
    }
}
