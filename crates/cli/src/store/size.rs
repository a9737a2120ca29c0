//! `size`: what takes the space of a store, by kind and by session.

use std::collections::HashMap;
use std::process::ExitCode;

use backstitch::id::SessionId;
use backstitch::ports::{SessionQuery, StoreSize};
use backstitch::report::{ListOptions, ListedSession};
use clap::Args;

use crate::common::{Common, counted};
use crate::open::{IndexedStore, ProjectStore, short};
use crate::report::Report;
use crate::terminal::{Pager, Role, Table, Text, grouped};

/// The most sessions that are listed, the largest.
const SHOWN: usize = 20;

#[derive(Args)]
pub(crate) struct Size {
    /// Measure the stores of all projects.
    #[arg(long)]
    all: bool,
}

impl Size {
    pub(crate) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        let _pager = Pager::new();
        for store in ProjectStore::of(common, self.all)? {
            if self.all {
                store.print_heading(common);
            }
            match show(common, &store).await {
                Ok(()) => {}
                Err(error) if self.all => store.print_error(common, &error),
                Err(error) => return Err(error),
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

async fn show(common: &Common, store: &ProjectStore) -> anyhow::Result<()> {
    let IndexedStore { place, index } = IndexedStore::open(&store.address).await?;
    let size = place.runtime.size().await?;
    let listed = index.list(ListOptions::of(SessionQuery::new())).await?.sessions;
    let titles: HashMap<SessionId, String> =
        listed.into_iter().map(|session| (session.session, title(&session))).collect();
    let report = Report::new(&size)
        .with("v", 1)
        .with("store", store.address.to_string())
        .line(total(&size))
        .lines(kinds(&size))
        .lines(sessions(&size, &titles));
    report.print(common);
    Ok(())
}

fn title(session: &ListedSession) -> String {
    match &session.name {
        Some(name) => format!("{name}  {}", session.mission),
        None => session.mission.to_string(),
    }
}

fn total(size: &StoreSize) -> Text {
    let file = Text::new().add(Role::Heading, format!("{} bytes", grouped(size.file + size.log)));
    file.plain(format!(", of which {} in the log and {} free", grouped(size.log), grouped(size.free)))
}

/// Lists what is stored by kind.
fn kinds(size: &StoreSize) -> Vec<Text> {
    let mut table = Table::new(["kind", "count", "bytes", "stored"]).align_right(1..4);
    let records: u64 = size.sessions.iter().map(|one| one.records).sum();
    let text: u64 = size.sessions.iter().map(|one| one.text).sum();
    let snapshots: u64 = size.sessions.iter().map(|one| one.snapshot).sum();
    let own =
        [("records", records, text, text), ("snapshots", size.sessions.len() as u64, snapshots, snapshots)];
    let objects = size.objects.iter().map(|one| (one.kind.as_str(), one.objects, one.content, one.stored));
    for (kind, count, bytes, stored) in own.into_iter().chain(objects) {
        table.row([Text::from(kind), grouped(count).into(), grouped(bytes).into(), grouped(stored).into()]);
    }
    table.lines()
}

/// Lists the largest sessions, without what they share with others.
fn sessions(size: &StoreSize, titles: &HashMap<SessionId, String>) -> Vec<Text> {
    let mut largest: Vec<_> = size.sessions.iter().collect();
    largest.sort_by_key(|one| std::cmp::Reverse(one.text + one.snapshot));
    let mut table = Table::new(["session", "records", "bytes", "mission"]).align_right(1..3);
    for one in largest.iter().take(SHOWN) {
        let title = titles.get(&one.session).map_or("", String::as_str);
        table.row([
            Text::new().add(Role::Id, short(one.session)),
            grouped(one.records).into(),
            grouped(one.text + one.snapshot).into(),
            title.into(),
        ]);
    }
    let mut lines = table.lines();
    if let more @ 1.. = largest.len().saturating_sub(SHOWN) {
        let more = format!("and {}", counted(more, "smaller session"));
        lines.push(Text::new().add(Role::Dim, more));
    }
    lines
}
