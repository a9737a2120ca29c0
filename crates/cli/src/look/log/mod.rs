//! `log`: prints the records of a session, including those before a rewind.
//!
//! Records are printed as they are read, so that a long journal starts to print at once.

mod graph;
mod line;
mod tree;

use std::process::ExitCode;

use backstitch::SystemClock;
use backstitch::host::{LogEntry, LogFilter};
use backstitch::journal::RecordBody;
use backstitch::time::Clock as _;
use clap::Args;
use clap::builder::PossibleValuesParser;

use super::list::moment;
use crate::common::Common;
use crate::open::{OpenStore, in_any_session, in_session_or_whole};
use crate::terminal::Pager;
use crate::usage;
use line::Lines;

#[derive(Args)]
pub(crate) struct Log {
    /// Session id, or at least 4 characters of its beginning or end. Default: the latest session; with --file, the latest one
    /// that changed the file.
    session: Option<String>,
    /// Print every record. Default: only those that describe themselves to people.
    #[arg(long)]
    all: bool,
    /// Print new records as they are appended, until the session ends, stops or is paused.
    #[arg(long, short)]
    follow: bool,
    /// Print only failures: of attempts to reach the model, of calls and of evaluations.
    #[arg(long)]
    failed: bool,
    /// Print only records since a time (RFC 3339), or of the last 2h, 3d and so on.
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Print only the last N of the selected records.
    #[arg(long, short = 'n', value_name = "N")]
    limit: Option<usize>,
    /// Print only records of this kind; may be given several times.
    #[arg(long, value_name = "KIND", value_parser = PossibleValuesParser::new(RecordBody::KINDS.iter().map(|(kind, _)| *kind)))]
    kind: Vec<String>,
    /// Print only the calls that changed this file, or something in this directory.
    #[arg(long, value_name = "PATH", conflicts_with = "graph")]
    file: Option<String>,
    /// Draw rewinds, forks, sub-agents and rescued files as a graph, newest first.
    #[arg(long, conflicts_with = "follow")]
    graph: bool,
}

impl Log {
    pub(crate) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        if self.graph && common.json {
            return usage::refuse("`--graph` draws for people: with `--json`, use `branch` and `visible`");
        }
        let place = OpenStore::for_reading(common)?;
        let since = self.since.as_deref().map(|text| moment(text, SystemClock::default().now()));
        let (since, kinds) = (since.transpose()?, self.kind);
        let session = match (&self.session, &self.file) {
            // Of a file, the latest session that changed it. The latest of all says nothing about other files.
            (None, Some(file)) => {
                place.runtime.sessions_that_changed(&in_any_session(file)?).await?.into_iter().max()
            }
            _ => None,
        };
        let session = match session {
            Some(session) => session,
            None => place.session(self.session.as_deref()).await?,
        };
        let view = place.view(session).await?;
        let file = self.file.as_deref().map(|path| in_session_or_whole(&view, path)).transpose()?;
        let filter = LogFilter { all: self.all, failed: self.failed, since, kinds, file };
        // A pager would wait for the end of what is followed.
        let _pager = if self.follow || common.json { None } else { Some(Pager::new()) };
        if self.graph {
            tree::print(&place, &view, &filter, self.limit).await?;
            return Ok(ExitCode::SUCCESS);
        }
        let mut log = place.runtime.log(view, filter);
        if let Some(limit) = self.limit {
            log.skip_to_last(limit).await?;
        }
        let mut lines = Lines::new();
        while let Some(entry) = log.next().await? {
            print(common, &mut lines, &entry)?;
        }
        while self.follow
            && let Some(entry) = log.next_new().await?
        {
            print(common, &mut lines, &entry)?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn print(common: &Common, lines: &mut Lines, entry: &LogEntry) -> anyhow::Result<()> {
    if common.json {
        println!("{}", serde_json::to_string(&entry.line()?)?);
    } else {
        lines.print(entry);
    }
    Ok(())
}
