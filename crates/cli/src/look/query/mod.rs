//! `query`: executes SQL that reads, over the views of docs/query.md.
//!
//! The statement runs on a thread of its own. SQLite looks at the clock between its steps, but a single step can
//! take very long; so the command also watches the clock itself, and ends without the thread.

mod output;

use std::io::Read as _;
use std::process::ExitCode;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use backstitch::ports::{RowSink, SelectError, SelectLimits, SelectedRows, SqlValue};
use clap::Args;
use tokio::runtime::Handle;

use crate::common::Common;
use crate::open::index::SessionIndex;
use crate::open::place::OpenStore;
use crate::terminal::pager::Pager;
use crate::usage::Usage;
use output::{Format, Output};

/// How long the thread may need to end after its time is over.
const GRACE: Duration = Duration::from_secs(2);

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

/// A message of the thread that reads.
enum Message {
    Columns(Vec<String>),
    Row(Vec<SqlValue>),
    End(Result<SelectedRows, SelectError>),
}

struct ToChannel(Sender<Message>);

impl RowSink for ToChannel {
    fn columns(&mut self, names: Vec<String>) {
        let _ = self.0.send(Message::Columns(names));
    }

    fn row(&mut self, values: Vec<SqlValue>) -> bool {
        self.0.send(Message::Row(values)).is_ok()
    }
}

impl Query {
    pub(crate) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        let format = match (common.json, self.csv) {
            (true, true) => return Err(Usage("`--csv` and `--json` exclude each other".to_owned()).into()),
            (true, false) => Format::Json,
            (false, true) => Format::Csv,
            (false, false) => Format::Table,
        };
        let sql = self.statement()?;
        // The index is brought up to date, because the view of sessions reads it.
        let place = SessionIndex::open(&OpenStore::address(common)?).await?.place;
        let limits = SelectLimits {
            rows: self.limit,
            time: Duration::from_secs(self.seconds),
            ..SelectLimits::default()
        };
        let _pager = Pager::new();
        let mut output = Output::new(format);
        let selected = selected(&place, sql, limits, |message| match message {
            Message::Columns(names) => output.columns(names),
            Message::Row(values) => output.row(&values),
            Message::End(_) => {}
        })?;
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
            return Err(Usage("the statement is empty".to_owned()).into());
        }
        Ok(sql)
    }
}

/// Executes a statement and passes its rows on, as long as its time allows.
fn selected(
    place: &OpenStore,
    sql: String,
    limits: SelectLimits,
    mut each: impl FnMut(Message),
) -> Result<SelectedRows, SelectError> {
    let (sender, receiver) = mpsc::channel();
    let (admin, runtime) = (place.admin.clone(), Handle::current());
    let end = Instant::now().checked_add(limits.time.saturating_add(GRACE));
    // The thread is not joined: it may be inside of a step that never ends, and it only reads.
    std::thread::spawn(move || {
        let mut sink = ToChannel(sender.clone());
        let done = runtime.block_on(admin.select(&sql, &[], limits, &mut sink));
        let _ = sender.send(Message::End(done));
    });
    loop {
        let left = end.map_or(Duration::MAX, |end| end.saturating_duration_since(Instant::now()));
        match receiver.recv_timeout(left) {
            Ok(Message::End(done)) => return done,
            Ok(message) => each(message),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                return Err(SelectError::TooLong { limit: limits.time });
            }
        }
    }
}
