//! Tables with a header, aligned by the width of their cells.
//!
//! On a terminal a table is as wide as that at most: first the columns that may be left out are, then the last column is
//! cut. Elsewhere nothing is cut.

use std::io::{self, IsTerminal as _};

use super::style::{Role, Text};

/// Spaces between two columns.
const GAP: usize = 2;

/// A row, and lines below it.
struct TableRow {
    cells: Vec<Text>,
    below: Vec<Text>,
}

/// A table. Every row has as many cells as the header.
#[derive(Default)]
#[must_use]
pub(crate) struct Table {
    header: Vec<String>,
    right: Vec<usize>,
    optional: Vec<usize>,
    least_last: usize,
    absent: Option<usize>,
    rows: Vec<TableRow>,
}

impl Table {
    pub(crate) fn new(header: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { header: header.into_iter().map(Into::into).collect(), ..Self::default() }
    }

    /// Aligns columns, counted from 0, at their right.
    pub(crate) fn align_right(mut self, columns: impl IntoIterator<Item = usize>) -> Self {
        self.right = columns.into_iter().collect();
        self
    }

    /// Leaves out these columns, one after the other, while the last column has fewer than `least` columns.
    pub(crate) fn leave_out<const N: usize>(mut self, columns: [usize; N], least: usize) -> Self {
        (self.optional, self.least_last) = (columns.to_vec(), least);
        self
    }

    /// Leaves out a column everywhere, if one is given.
    pub(crate) fn without(mut self, column: Option<usize>) -> Self {
        self.absent = column;
        self
    }

    /// Adds a row.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = Text>) {
        let cells = cells.into_iter().map(Text::without_tabs).collect();
        self.rows.push(TableRow { cells, below: Vec::new() });
    }

    /// Adds a line below the last row, from the second column on.
    pub(crate) fn below(&mut self, text: Text) {
        if let Some(row) = self.rows.last_mut() {
            row.below.push(text.without_tabs());
        }
    }

    /// Prints the table to standard output.
    pub(crate) fn print(self) {
        let columns = io::stdout().is_terminal().then(super::columns);
        let has_colors = super::style::stdout_has_colors();
        let mut all = String::new();
        self.each_line(columns, |line| {
            line.render(has_colors, &mut all);
            all.push('\n');
        });
        super::output::stdout(all.as_bytes());
    }

    /// Returns the lines of the table, as they are printed to standard output.
    pub(crate) fn lines(self) -> Vec<Text> {
        let mut lines = Vec::new();
        self.each_line(io::stdout().is_terminal().then(super::columns), |line| lines.push(line));
        lines
    }

    /// Passes the lines of the table one after the other, for a terminal with so many columns, or for another output.
    fn each_line(mut self, columns: Option<usize>, mut each: impl FnMut(Text)) {
        let header = self.header.iter().map(|name| Text::new().add(Role::Heading, name)).collect();
        self.rows.insert(0, TableRow { cells: header, below: Vec::new() });
        let mut widths = vec![0; self.header.len()];
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(&row.cells) {
                *width = cell.width().max(*width);
            }
        }
        let shown = self.shown(&widths, columns);
        let indent = shown.first().map_or(0, |first| widths[*first]);
        let fitted = |text: Text| match columns {
            Some(columns) => text.trimmed().cut(columns),
            None => text.trimmed(),
        };
        for mut row in std::mem::take(&mut self.rows) {
            let mut line = Text::new();
            for column in &shown {
                let cell = row.cells.get_mut(*column).map(std::mem::take).unwrap_or_default();
                let padding = widths[*column].saturating_sub(cell.width());
                let gap = if Some(column) == shown.first() { 0 } else { GAP };
                line = if self.right.contains(column) {
                    line.spaces(gap + padding).join(cell)
                } else {
                    line.spaces(gap).join(cell).spaces(padding)
                };
            }
            each(fitted(line));
            let below = |text: Text| Text::new().spaces(indent + GAP).join(text);
            row.below.into_iter().for_each(|text| each(fitted(below(text))));
        }
    }

    /// The columns that are printed.
    fn shown(&self, widths: &[usize], columns: Option<usize>) -> Vec<usize> {
        let mut shown: Vec<usize> = (0..widths.len()).filter(|column| Some(*column) != self.absent).collect();
        let (Some(columns), Some(last)) = (columns, widths.last()) else { return shown };
        let least = self.least_last.min(*last);
        for optional in &self.optional {
            let before: usize = shown.iter().rev().skip(1).map(|column| widths[*column] + GAP).sum();
            if before + least <= columns {
                break;
            }
            shown.retain(|column| column != optional);
        }
        shown
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::style::tests::{colored, has_no_controls, without_colors};
    use super::*;

    fn lines(table: Table, columns: Option<usize>) -> Vec<Text> {
        let mut lines = Vec::new();
        table.each_line(columns, |line| lines.push(line));
        lines
    }

    fn texts(table: Table, columns: Option<usize>) -> Vec<String> {
        lines(table, columns).iter().map(Text::text).collect()
    }

    fn sample() -> Table {
        let mut table = Table::new(["session", "turns", "status", "mission"]).align_right(1..2);
        table.row(["4f2a".into(), "12".into(), "idle".into(), "Mend the sleeve of the 漢字 coat".into()]);
        table.row(["9c41".into(), "3".into(), "failed".into(), "Sew".into()]);
        table.below("network: the model did not answer".into());
        table
    }

    #[test]
    fn columns_are_aligned_by_width() {
        let lines = texts(sample(), None);
        assert_eq!(
            lines,
            [
                "session  turns  status  mission",
                "4f2a        12  idle    Mend the sleeve of the 漢字 coat",
                "9c41         3  failed  Sew",
                "         network: the model did not answer",
            ]
        );
    }

    #[test]
    fn a_narrow_terminal_leaves_out_columns_and_cuts_the_last() {
        let lines = texts(sample(), Some(40));
        assert_eq!(lines[1], "4f2a        12  idle    Mend the sleeve…");
        assert_eq!(lines[3], "         network: the model did not ans…");
        let lines = texts(sample().leave_out([1, 2], 23), Some(40));
        assert_eq!(lines[1], "4f2a     idle    Mend the sleeve of the…");
        let lines = texts(sample().leave_out([1, 2], 28), Some(40));
        assert_eq!(lines[1], "4f2a     Mend the sleeve of the 漢字 co…");
    }

    proptest! {
        #[test]
        fn a_table_fits_and_its_only_controls_are_its_colors(
            cells in prop::collection::vec([colored(), colored(), colored()], 0..5),
            below in colored(),
            columns in 0_usize..60,
        ) {
            let mut table = Table::new(["first", "second", "third"]).align_right(0..1).leave_out([1], 10);
            cells.into_iter().for_each(|cells| table.row(cells));
            table.below(below);
            for line in lines(table, Some(columns)) {
                prop_assert!(line.width() <= columns, "{line:?}");
                prop_assert!(has_no_controls(&without_colors(&line.rendered(true))), "{line:?}");
            }
        }
    }
}
