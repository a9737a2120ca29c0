//! `query`: executes SQL that reads, over the views of docs/query.md. Rows are printed as a table, as comma-separated values,
//! or as JSON.

use std::io::{IsTerminal as _, Read as _};
use std::process::ExitCode;
use std::time::Duration;

use backstitch::ports::{RowSink, SelectLimits, SqlValue};
use backstitch::report::QueryRow;
use clap::Args;
use serde_json::json;

use crate::common::Common;
use crate::open::{IndexedStore, ProjectStore};
use crate::terminal::{self, Pager, Table, Text};
use crate::usage;

/// The longest statement that is read from standard input, in bytes.
const LONGEST: u64 = 1024 * 1024;

#[derive(Args)]
pub(crate) struct Query {
    /// One SELECT statement, or `-` to read it from standard input.
    sql: String,
    /// Execute it over the stores of all projects, one after the other. With `--json`, each row names its `store`.
    #[arg(long)]
    all: bool,
    /// Print comma-separated values with a header.
    #[arg(long)]
    csv: bool,
    /// Print at most this many rows.
    #[arg(long, value_name = "N", default_value_t = SelectLimits::default().rows)]
    limit: usize,
    /// Stop the query after this many seconds.
    #[arg(long, value_name = "N", default_value_t = SelectLimits::default().time.as_secs(), value_parser = clap::value_parser!(u64).range(1..=86_400))]
    seconds: u64,
}

impl Query {
    pub(crate) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        let format = match (common.json, self.csv) {
            (true, true) => return usage::refuse("`--csv` and `--json` exclude each other"),
            (true, false) => Format::Json,
            (false, true) => Format::Csv,
            (false, false) => Format::Table,
        };
        let sql = self.statement()?;
        if self.all && format == Format::Csv {
            return usage::refuse("`--all` prints several tables: use it with `--json`, or without `--csv`");
        }
        let _pager = Pager::new();
        for store in ProjectStore::of(common, self.all)? {
            if !self.all {
                self.select(&sql, &store, Output::new(format)).await?;
                continue;
            }
            store.print_heading(common);
            let output = Output { store: Some(store.address.to_string()), ..Output::new(format) };
            if let Err(error) = self.select(&sql, &store, output).await {
                store.print_error(common, &error);
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    async fn select(&self, sql: &str, store: &ProjectStore, mut output: Output) -> anyhow::Result<()> {
        // The index is brought up to date, because the view of sessions reads it.
        let place = IndexedStore::open(&store.address).await?.place;
        let limits = SelectLimits {
            rows: self.limit,
            time: Duration::from_secs(self.seconds),
            ..SelectLimits::default()
        };
        let selected = place.runtime.query(sql, limits, &mut output).await?;
        output.end();
        if selected.is_cut {
            eprintln!("only the first {} rows are shown: `--limit N` shows more", selected.rows);
        }
        Ok(())
    }

    fn statement(&self) -> anyhow::Result<String> {
        let mut sql = self.sql.clone();
        if sql == "-" {
            sql.clear();
            std::io::stdin().take(LONGEST).read_to_string(&mut sql)?;
        }
        if sql.trim().is_empty() {
            return usage::refuse("the statement is empty");
        }
        Ok(sql)
    }
}

/// The most columns of the screen that one column of a table takes, on a terminal.
const WIDEST: usize = 60;

/// The form of the output.
#[derive(Clone, Copy, PartialEq)]
enum Format {
    Table,
    Csv,
    Json,
}

/// Prints rows. Rows of a table are collected, since they decide its widths; others are printed at once.
struct Output {
    format: Format,
    names: Vec<String>,
    rows: Vec<Vec<SqlValue>>,
    /// The store, where there are several.
    store: Option<String>,
}

impl Output {
    fn new(format: Format) -> Self {
        Self { format, names: Vec::new(), rows: Vec::new(), store: None }
    }

    /// Prints what was collected.
    fn end(&self) {
        if self.format != Format::Table || self.names.is_empty() {
            return;
        }
        if self.rows.is_empty() {
            println!("no rows");
            return;
        }
        let widest = if std::io::stdout().is_terminal() { WIDEST } else { usize::MAX };
        let is_number = |column: &usize| {
            let mut values = self.rows.iter().filter_map(|row| row.get(*column));
            values.all(|value| matches!(value, SqlValue::Null | SqlValue::Integer(_) | SqlValue::Real(_)))
        };
        let mut table = Table::new(&self.names).align_right((0..self.names.len()).filter(is_number));
        for row in &self.rows {
            table.row(row.iter().map(|value| {
                // A table has one line for each row.
                let text = text(value).replace('\n', "\\n").replace('\t', "\\t");
                Text::from(terminal::cut(&text, widest))
            }));
        }
        table.print();
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
            Format::Table => self.rows.push(values),
            Format::Csv => {
                let values: Vec<String> = values.iter().map(text).collect();
                print_csv(values.iter().map(String::as_str));
            }
            Format::Json => {
                let mut row = json!(QueryRow::new(&self.names, &values));
                if let (Some(store), Some(fields)) = (&self.store, row.as_object_mut()) {
                    // A column of that name is what was asked for.
                    fields.entry("store").or_insert_with(|| store.as_str().into());
                }
                println!("{row}");
            }
        }
        true
    }
}

fn text(value: &SqlValue) -> String {
    match value {
        SqlValue::Null => String::new(),
        SqlValue::Integer(number) => number.to_string(),
        SqlValue::Real(number) => number.to_string(),
        SqlValue::Text(text) => text.clone(),
        SqlValue::Blob(bytes) => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
    }
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
