//! `log`: prints the records of a session, including those before a rewind.
//!
//! Records are read and printed page by page, so that a long journal starts to print at once.

mod files;
mod filter;
mod graph;
mod line;
mod tree;
mod words;

use std::ops::Range;
use std::process::ExitCode;

use backstitch::SessionEvent;
use backstitch::host::load_view;
use backstitch::id::SessionId;
use backstitch::journal::{Position, Record, RecordBody};
use backstitch::view::JournalView;
use clap::Args;
use clap::builder::PossibleValuesParser;
use serde_json::{Value, json};

use super::waiting::{PendingCall, pending_call};
use crate::common::Common;
use crate::open::place::OpenStore;
use crate::terminal::pager::Pager;
use crate::usage::Usage;
use files::CallFiles;
use filter::RecordFilter;
use line::Lines;

/// How many records are read at a time.
const PAGE: u64 = 500;

#[derive(Args)]
pub(crate) struct Log {
    /// Session id, or at least 4 characters of its beginning or end. Default: the latest session.
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
    /// Draw rewinds, forks, sub-agents and rescued files as a graph, newest first.
    #[arg(long, conflicts_with = "follow")]
    graph: bool,
}

/// A session whose log is printed.
struct LoggedSession<'a> {
    common: &'a Common,
    place: &'a OpenStore,
    view: JournalView,
    /// The positions that are visible at the head.
    visible: Vec<Range<Position>>,
    files: CallFiles,
}

impl Log {
    pub(crate) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        if self.graph && common.json {
            return Err(Usage(
                "`--graph` draws for people: with `--json`, use `branch` and `visible`".to_owned(),
            )
            .into());
        }
        let place = OpenStore::for_reading(common)?;
        let filter = RecordFilter::new(self.all, self.failed, self.since.as_deref(), self.kind)?;
        let session = place.session(self.session.as_deref()).await?;
        let mut logged = LoggedSession::load(common, &place, session).await?;
        // A pager would wait for the end of what is followed.
        let _pager = if self.follow || common.json { None } else { Some(Pager::new()) };
        if self.graph {
            tree::print(&place, &logged.view, &filter, self.limit).await?;
            return Ok(ExitCode::SUCCESS);
        }
        let mut lines = Lines::new();
        let mut from = match self.limit {
            Some(limit) => logged.start_of_last(&filter, limit).await?,
            None => Position::START,
        };
        let head = logged.view.head();
        while from < head {
            let wanted = PAGE.min(head.number() - from.number());
            let records = place.store.read(session, from, usize::try_from(wanted)?).await?;
            let Some(last) = records.last() else { break };
            from = last.position.next();
            for record in &records {
                logged.print(&filter, &mut lines, record).await?;
            }
        }
        if self.follow {
            logged.follow(&filter, &mut lines).await?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl<'a> LoggedSession<'a> {
    async fn load(common: &'a Common, place: &'a OpenStore, session: SessionId) -> anyhow::Result<Self> {
        let view = place.view(session).await?;
        let visible = view.lineage().visible(view.head());
        Ok(Self { common, place, view, visible, files: CallFiles::default() })
    }

    /// Returns the position of the first of the last records that a filter selects.
    async fn start_of_last(&self, filter: &RecordFilter, limit: usize) -> anyhow::Result<Position> {
        let (mut end, mut left) = (self.view.head().number(), limit);
        if limit == 0 {
            return Ok(self.view.head());
        }
        while end > 0 {
            let start = end.saturating_sub(PAGE);
            let wanted = usize::try_from(end - start)?;
            let records = self.place.store.read(self.view.session_id(), Position::new(start), wanted).await?;
            for record in records.iter().rev().filter(|record| filter.text(record).is_some()) {
                left -= 1;
                if left == 0 {
                    return Ok(record.position);
                }
            }
            end = start;
        }
        Ok(Position::START)
    }

    async fn follow(&mut self, filter: &RecordFilter, lines: &mut Lines) -> anyhow::Result<()> {
        let (common, place, session) = (self.common, self.place, self.view.session_id());
        let mut events = place.runtime.events(session).from(self.view.head());
        loop {
            let Some(SessionEvent::Record(record)) = events.next().await? else { continue };
            // Only these depend on the view: a rewind changes what is visible, and a pause names a call.
            if matches!(record.body, RecordBody::Rewound(_) | RecordBody::Paused(_)) {
                *self = Self::load(common, place, session).await?;
            }
            self.print(filter, lines, &record).await?;
            let has_ended = matches!(
                record.body,
                RecordBody::EvaluationFinished(_) | RecordBody::Paused(_) | RecordBody::SessionStopped(_)
            );
            if has_ended {
                return Ok(());
            }
        }
    }

    async fn print(
        &mut self,
        filter: &RecordFilter,
        lines: &mut Lines,
        record: &Record,
    ) -> anyhow::Result<()> {
        let changes = self.files.changes(&*self.place.objects, &self.view, record);
        let Some(mut text) = filter.text(record) else { return Ok(()) };
        if let Some(changes) = changes {
            text = format!("{text} ({changes})");
        }
        let is_new = record.position >= self.view.head();
        let is_visible = is_new || self.visible.iter().any(|range| range.contains(&record.position));
        let branch = self.view.lineage().branch_of(record.position).0;
        let call = asked_about(self.place, &self.view, record).await?;
        if self.common.json {
            let mut line = as_json(record)?;
            (line["branch"], line["visible"], line["text"]) = (json!(branch), json!(is_visible), json!(text));
            if let Some(call) = call {
                (line["name"], line["arguments"]) = (json!(call.name), call.arguments);
            }
            println!("{line}");
        } else {
            lines.print(record, branch, is_visible, &text, call.as_ref());
        }
        Ok(())
    }
}

/// Renders a record as it was appended: position, time, kind, version of the kind, data, and fields that this
/// version does not know. The form is stable, see docs/cli.md.
fn as_json(record: &Record) -> anyhow::Result<Value> {
    let mut stored = serde_json::to_value(record)?;
    let mut line = json!({
        "v": 1, "position": record.position, "at": record.at, "kind": record.body.kind(),
        "version": record.version(), "data": stored["data"].take(),
    });
    if let Some(stored) = stored.as_object_mut() {
        ["position", "v", "kind", "at", "data"].iter().for_each(|known| _ = stored.remove(*known));
        if !stored.is_empty() {
            line["extra"] = json!(stored);
        }
    }
    Ok(line)
}

/// Returns the call that a pause was about, with all of its arguments. A call before a rewind is looked up in
/// the session as it was then.
async fn asked_about(
    place: &OpenStore,
    view: &JournalView,
    record: &Record,
) -> anyhow::Result<Option<PendingCall>> {
    let RecordBody::Paused(paused) = &record.body else { return Ok(None) };
    if paused.call_id.is_none_or(|call| view.call(call).is_some()) {
        return pending_call(&*place.store, view, paused).await;
    }
    let then = load_view(&*place.store, view.session_id(), Some(record.position.next())).await?;
    pending_call(&*place.store, &then, paused).await
}
