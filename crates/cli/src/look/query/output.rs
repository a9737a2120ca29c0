//! Rows of a query: as a table, as comma-separated values, or as JSON.

use std::io::IsTerminal as _;

use backstitch::ports::{RowSink, SqlValue};
use backstitch::report::QueryRow;
use serde_json::json;

use crate::terminal::style::{Role, Text};
use crate::terminal::{self, columns, width};

/// The most columns of the screen that one column of a table takes, on a terminal.
const WIDEST: usize = 60;

/// The form of the output.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Format {
    Table,
    Csv,
    Json,
}

/// Prints rows. Rows of a table are collected, since they decide its widths; others are printed at once.
pub(super) struct Output {
    format: Format,
    names: Vec<String>,
    rows: Vec<Vec<Cell>>,
}

/// A cell of a table.
struct Cell {
    text: String,
    is_number: bool,
}

impl Output {
    pub(super) fn new(format: Format) -> Self {
        Self { format, names: Vec::new(), rows: Vec::new() }
    }

    /// Prints what was collected.
    pub(super) fn end(&self) {
        if self.format != Format::Table || self.names.is_empty() {
            return;
        }
        if self.rows.is_empty() {
            println!("no rows");
            return;
        }
        let is_terminal = std::io::stdout().is_terminal();
        let widest = if is_terminal { WIDEST } else { usize::MAX };
        let width_of = |index: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(index)).map(|cell| width(&cell.text));
            cells.chain([width(&self.names[index])]).max().unwrap_or(0).min(widest)
        };
        let widths: Vec<usize> = (0..self.names.len()).map(width_of).collect();
        let header: Vec<Cell> =
            self.names.iter().map(|name| Cell { text: name.clone(), is_number: false }).collect();
        print_line(&header, &widths, Role::Heading, is_terminal);
        self.rows.iter().for_each(|row| print_line(row, &widths, Role::Plain, is_terminal));
    }
}

impl RowSink for Output {
    fn columns(&mut self, names: Vec<String>) {
        if self.format == Format::Csv {
            print_csv(names.iter().map(String::as_str));
        }
        self.names = names;
    }

    fn row(&mut self, values: Vec<SqlValue>) -> bool {
        match self.format {
            Format::Table => self.rows.push(values.iter().map(cell).collect()),
            Format::Csv => {
                let values: Vec<String> = values.iter().map(text).collect();
                print_csv(values.iter().map(String::as_str));
            }
            Format::Json => println!("{}", json!(QueryRow::new(&self.names, &values))),
        }
        true
    }
}

fn print_line(cells: &[Cell], widths: &[usize], role: Role, is_terminal: bool) {
    let mut line = Text::new();
    for (index, (cell, widest)) in cells.iter().zip(widths).enumerate() {
        let cut = terminal::cut(&cell.text, *widest);
        let space = " ".repeat(widest.saturating_sub(width(&cut)));
        let padded = if cell.is_number { format!("{space}{cut}") } else { format!("{cut}{space}") };
        let gap = if index == 0 { "" } else { "  " };
        line = line.plain(gap).add(role, padded);
    }
    let line = line.trimmed();
    terminal::line(&if is_terminal { line.cut(columns()) } else { line });
}

fn cell(value: &SqlValue) -> Cell {
    let is_number = matches!(value, SqlValue::Integer(_) | SqlValue::Real(_));
    // A table has one line for each row.
    let text = text(value).replace('\n', "\\n").replace('\t', "\\t");
    Cell { text, is_number }
}

fn text(value: &SqlValue) -> String {
    match value {
        SqlValue::Null => String::new(),
        SqlValue::Integer(number) => number.to_string(),
        SqlValue::Real(number) => number.to_string(),
        SqlValue::Text(text) => text.clone(),
        SqlValue::Blob(bytes) => hex(bytes),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Prints a line of comma-separated values, with quotes where they are needed (RFC 4180).
fn print_csv<'a>(values: impl Iterator<Item = &'a str>) {
    let quoted = values.map(|value| {
        if value.contains([',', '"', '\n', '\r']) {
            format!("\"{}\"", value.replace('"', "\"\""))
        } else {
            value.to_owned()
        }
    });
    terminal::data(&format!("{}\r\n", quoted.collect::<Vec<_>>().join(",")));
}
