//! `stats`: what sessions used, by day, model, tool, agent and tag.

use std::process::ExitCode;
use std::time::Duration;

use backstitch::SystemClock;
use backstitch::report::{UsageReport, UsageRow};
use backstitch::stores::{self, StoreAddress};
use backstitch::time::{Clock as _, Timestamp};
use clap::Args;
use clap::builder::PossibleValuesParser;

use super::list::moment;
use crate::common::{Common, counted};
use crate::open::{IndexedStore, OpenStore, with_store_hint};
use crate::report::{Report, ReportLine};
use crate::terminal::{Pager, Role, Table, Text, duration, grouped, money};

/// Columns that the time gets before other columns are left out.
const ROOM: usize = 8;

#[derive(Args)]
pub(crate) struct Stats {
    /// Count the sessions of all projects.
    #[arg(long)]
    all: bool,
    /// Count only what happened since a time (RFC 3339), or in the last 2h, 3d and so on.
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Print only this table; may be given several times.
    #[arg(long, value_name = "WHAT", value_parser = PossibleValuesParser::new(["day", "model", "tool", "agent", "tag"]))]
    by: Vec<String>,
}

impl Stats {
    pub(crate) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        let since =
            self.since.as_deref().map(|text| moment(text, SystemClock::default().now())).transpose()?;
        let mut report = UsageReport::new(since);
        if self.all {
            for known in stores::all().map_err(with_store_hint)? {
                let store = known.store();
                // A store that cannot be read does not hide the others.
                match of_store(&StoreAddress::File(store.clone()), since).await {
                    Ok(of_store) => report.add(of_store),
                    Err(error) => report.unreadable.push(format!("{}: {error:#}", store.display())),
                }
            }
        } else {
            report = of_store(&OpenStore::address(common)?, since).await?;
        }
        report.unreadable.iter().for_each(|error| eprintln!("not counted: {error}"));
        let mut lines = total(&report);
        let UsageReport { days, models, tools, agents, tags, .. } = &mut report;
        let tables = [days, models, tools, agents, tags];
        for (name, rows) in ["day", "model", "tool", "agent", "tag"].into_iter().zip(tables) {
            if !self.by.is_empty() && self.by.iter().all(|by| by != name) {
                *rows = None;
            }
            if let Some(rows) = rows.as_deref().filter(|rows| !rows.is_empty()) {
                lines.push(Text::new());
                lines.extend(table(&name.to_uppercase(), rows));
            }
        }
        let _pager = Pager::new();
        Ok(Report::new(&report).lines(lines.into_iter().map(ReportLine::Text)).print(common))
    }
}

/// Adds up what the sessions of a store used. Its index is brought up to date before.
async fn of_store(address: &StoreAddress, since: Option<Timestamp>) -> anyhow::Result<UsageReport> {
    let place = IndexedStore::open(address).await?.place;
    Ok(place.runtime.stats(since).await?)
}

fn total(report: &UsageReport) -> Vec<Text> {
    let UsageReport { sessions, total, .. } = report;
    let tokens = total.input_tokens + total.output_tokens;
    let line = Text::new().add(Role::Heading, counted(*sessions, "session")).plain(", ");
    let line =
        line.plain(format!("{}, {}", counted(total.requests, "request"), counted(total.calls, "call")));
    let (input, output) = (grouped(total.input_tokens), grouped(total.output_tokens));
    let mut parts = vec![format!("{} tokens ({input} in, {output} out)", grouped(tokens))];
    // Without prices the cost is not known.
    let unpriced = || counted(total.unpriced_requests, "request");
    match (total.money_micros, total.unpriced_requests) {
        (0, 0) => {}
        (0, _) => parts.push(format!("cost not known: {} without a price", unpriced())),
        (micros, 0) => parts.push(format!("cost {}", money(micros))),
        (micros, _) => parts.push(format!("cost {} and {} without a price", money(micros), unpriced())),
    }
    let (failures, retries) = (counted(total.failures, "failed attempt"), counted(total.retries, "retry"));
    parts.push(format!("{failures} at requests, {retries}"));
    parts.push(format!("{} failed", counted(total.failed_calls, "call")));
    let [model, calls] =
        [total.model_millis, total.call_millis].map(|millis| duration(Duration::from_millis(millis)));
    let times = format!("{model} waiting for models, {calls} in calls");
    vec![line, parts.join("; ").into(), times.into()]
}

fn table(title: &str, rows: &[UsageRow]) -> Vec<Text> {
    let plain = |text: String| Text::new().plain(text);
    let failed = |number: u64| match number {
        0 => Text::new().add(Role::Dim, "0"),
        number => Text::new().add(Role::Failure, number.to_string()),
    };
    let key = |row: &UsageRow| match row.of.as_str() {
        "" => Text::new().add(Role::Accent, "(unnamed)"),
        key => Text::new().add(Role::Accent, key),
    };
    // What is not known is not zero.
    let cost = |micros: u64, unpriced: u64| match (micros, unpriced) {
        (0, 1..) => Text::new().add(Role::Dim, "not known"),
        (micros, 0) => plain(money(micros)),
        (micros, _) => plain(format!("{} + ?", money(micros))),
    };
    let time = |millis: u64| plain(duration(Duration::from_millis(millis)));
    if title == "TOOL" {
        let mut table = Table::new([title, "CALLS", "FAILED", "REPEATED", "TIME"])
            .leave_out([3, 2], ROOM)
            .align_right(1..4);
        for row in rows {
            let usage = &row.usage;
            table.row([
                key(row),
                plain(usage.calls.to_string()),
                failed(usage.failed_calls),
                plain(usage.repeated_calls.to_string()),
                time(usage.call_millis),
            ]);
        }
        return table.lines();
    }
    let mut table =
        Table::new([title, "REQUESTS", "FAILED", "RETRIED", "IN", "OUT", "COST", "CALLS", "TIME"]);
    let has_cost = rows.iter().any(|row| row.usage.money_micros > 0);
    // What matters least is left out first.
    table = table.align_right(1..8).leave_out([3, 7, 2, 6, 1], ROOM).without((!has_cost).then_some(6));
    for row in rows {
        let usage = &row.usage;
        table.row([
            key(row),
            plain(usage.requests.to_string()),
            failed(usage.failures),
            plain(usage.retries.to_string()),
            plain(grouped(usage.input_tokens)),
            plain(grouped(usage.output_tokens)),
            cost(usage.money_micros, usage.unpriced_requests),
            plain(usage.calls.to_string()),
            time(usage.model_millis + usage.call_millis),
        ]);
    }
    table.lines()
}
