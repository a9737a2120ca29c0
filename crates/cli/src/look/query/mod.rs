//! `query`: executes SQL that reads, over the views of docs/query.md.

mod output;

use std::io::Read as _;
use std::process::ExitCode;
use std::time::Duration;

use backstitch::ports::SelectLimits;
use clap::Args;

use crate::common::Common;
use crate::open::index::IndexedStore;
use crate::open::place::OpenStore;
use crate::terminal::pager::Pager;
use crate::usage;
use output::{Format, Output};

/// The longest statement that is read from standard input, in bytes.
const LONGEST: u64 = 1024 * 1024;

#[derive(Args)]
pub(crate) struct Query {
    /// One SELECT statement, or `-` to read it from standard input.
    sql: String,
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
        // The index is brought up to date, because the view of sessions reads it.
        let place = IndexedStore::open(&OpenStore::address(common)?).await?.place;
        let limits = SelectLimits {
            rows: self.limit,
            time: Duration::from_secs(self.seconds),
            ..SelectLimits::default()
        };
        let _pager = Pager::new();
        let mut output = Output::new(format);
        let selected = place.runtime.query(&sql, limits, &mut output).await?;
        output.end();
        if selected.is_cut {
            eprintln!("only the first {} rows are shown: `--limit N` shows more", selected.rows);
        }
        Ok(ExitCode::SUCCESS)
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
