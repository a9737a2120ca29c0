//! `stats`: what sessions used, by day, model, tool and agent.
//!
//! The numbers come from the views of docs/query.md. Requests are counted in the session that sent them, so nothing
//! of a sub-agent counts twice.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Duration;

use backstitch::SystemClock;
use backstitch::ports::{RowSink, SelectError, SelectLimits, SqlValue, StoreAdmin};
use backstitch::stores::{self, StoreAddress};
use backstitch::time::Clock as _;
use clap::Args;
use clap::builder::PossibleValuesParser;
use serde_json::{Value, json};

use super::calls::duration;
use super::list::moment;
use crate::common::Common;
use crate::open::index::SessionIndex;
use crate::open::place::{OpenStore, elsewhere};
use crate::terminal;
use crate::terminal::number::{grouped, money};
use crate::terminal::pager::Pager;
use crate::terminal::style::{Role, Text};
use crate::terminal::table::Table;

/// Requests by day, agent and model.
const REQUESTS: &str =
    "SELECT date(started_at, 'localtime'), coalesce(sessions.agent, ''), provider || ':' || model,
    count(*), sum(failures), sum(retries), sum(requests.input_tokens), sum(requests.output_tokens),
    sum(requests.money_micros), sum(millis)
    FROM requests LEFT JOIN sessions ON sessions.session = requests.session
    WHERE started_at >= ?1 GROUP BY 1, 2, 3";

/// Calls by day, agent and tool.
const CALLS: &str =
    "SELECT date(coalesce(started_at, asked_at), 'localtime'), coalesce(sessions.agent, ''), tool,
    count(*), sum(status = 'failed'), sum(max(attempts - 1, 0)), sum(millis)
    FROM calls LEFT JOIN sessions ON sessions.session = calls.session
    WHERE coalesce(started_at, asked_at) >= ?1 GROUP BY 1, 2, 3";

/// Sessions that changed.
const SESSIONS: &str = "SELECT count(*) FROM sessions WHERE updated_at >= ?1";

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
    #[arg(long, value_name = "WHAT", value_parser = PossibleValuesParser::new(["day", "model", "tool", "agent"]))]
    by: Vec<String>,
}

/// What was used.
#[derive(Debug, Clone, Default, PartialEq)]
struct UsageSum {
    requests: u64,
    failures: u64,
    retries: u64,
    input_tokens: u64,
    output_tokens: u64,
    money_micros: u64,
    model_millis: u64,
    calls: u64,
    failed_calls: u64,
    repeated_calls: u64,
    call_millis: u64,
}

impl UsageSum {
    fn add(&mut self, other: &Self) {
        self.requests += other.requests;
        self.failures += other.failures;
        self.retries += other.retries;
        self.input_tokens += other.input_tokens;
        self.output_tokens += other.output_tokens;
        self.money_micros += other.money_micros;
        self.model_millis += other.model_millis;
        self.calls += other.calls;
        self.failed_calls += other.failed_calls;
        self.repeated_calls += other.repeated_calls;
        self.call_millis += other.call_millis;
    }

    fn as_json(&self) -> Value {
        json!({
            "requests": self.requests, "failures": self.failures, "retries": self.retries,
            "input_tokens": self.input_tokens, "output_tokens": self.output_tokens,
            "money_micros": self.money_micros, "model_millis": self.model_millis, "calls": self.calls,
            "failed_calls": self.failed_calls, "repeated_calls": self.repeated_calls,
            "call_millis": self.call_millis,
        })
    }
}

/// Sums of what was used.
#[derive(Default)]
struct Sums {
    sessions: u64,
    total: UsageSum,
    days: BTreeMap<String, UsageSum>,
    models: BTreeMap<String, UsageSum>,
    tools: BTreeMap<String, UsageSum>,
    agents: BTreeMap<String, UsageSum>,
}

impl Stats {
    pub(crate) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        let since =
            self.since.as_deref().map(|text| moment(text, SystemClock::default().now())).transpose()?;
        let bound = since.map(|since| since.to_string()).unwrap_or_default();
        let mut sums = Sums::default();
        let mut unreadable = Vec::new();
        if self.all {
            for known in stores::all().map_err(elsewhere)? {
                let store = known.store();
                // A store that cannot be read does not hide the others.
                let added = match SessionIndex::open(&StoreAddress::File(store.clone())).await {
                    Ok(index) => sums.add(&*index.place.admin, &bound).await.map_err(anyhow::Error::from),
                    Err(error) => Err(error),
                };
                if let Err(error) = added {
                    unreadable.push(format!("{}: {error:#}", store.display()));
                }
            }
        } else {
            let place = SessionIndex::open(&OpenStore::address(common)?).await?.place;
            sums.add(&*place.admin, &bound).await?;
        }
        unreadable.iter().for_each(|error| eprintln!("not counted: {error}"));
        let is_wanted = |what: &str| self.by.is_empty() || self.by.iter().any(|by| by == what);
        if common.json {
            let mut line = json!({
                "v": 1, "since": since, "sessions": sums.sessions, "total": sums.total.as_json(),
                "unreadable": unreadable,
            });
            for (name, _, table) in sums.tables() {
                if is_wanted(name) {
                    line[format!("{name}s")] = table
                        .iter()
                        .map(|(key, usage)| {
                            let mut row = usage.as_json();
                            row[name] = json!(key);
                            row
                        })
                        .collect();
                }
            }
            println!("{line}");
            return Ok(ExitCode::SUCCESS);
        }
        let _pager = Pager::new();
        print_total(&sums);
        for (name, title, table) in sums.tables() {
            if is_wanted(name) && !table.is_empty() {
                println!();
                print_table(name, title, table);
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl Sums {
    fn tables(&self) -> [(&'static str, &'static str, &BTreeMap<String, UsageSum>); 4] {
        [
            ("day", "DAY", &self.days),
            ("model", "MODEL", &self.models),
            ("tool", "TOOL", &self.tools),
            ("agent", "AGENT", &self.agents),
        ]
    }

    /// Adds what the sessions of a store used since a time.
    async fn add(&mut self, store: &dyn StoreAdmin, since: &str) -> Result<(), SelectError> {
        let since = [SqlValue::Text(since.to_owned())];
        for row in rows(store, SESSIONS, &since).await? {
            self.sessions += number(&row, 0);
        }
        for row in rows(store, REQUESTS, &since).await? {
            let usage = UsageSum {
                requests: number(&row, 3),
                failures: number(&row, 4),
                retries: number(&row, 5),
                input_tokens: number(&row, 6),
                output_tokens: number(&row, 7),
                money_micros: number(&row, 8),
                model_millis: number(&row, 9),
                ..UsageSum::default()
            };
            self.count(&row, &usage);
            self.models.entry(text(&row, 2)).or_default().add(&usage);
        }
        for row in rows(store, CALLS, &since).await? {
            let usage = UsageSum {
                calls: number(&row, 3),
                failed_calls: number(&row, 4),
                repeated_calls: number(&row, 5),
                call_millis: number(&row, 6),
                ..UsageSum::default()
            };
            self.count(&row, &usage);
            self.tools.entry(text(&row, 2)).or_default().add(&usage);
        }
        Ok(())
    }

    fn count(&mut self, row: &[SqlValue], usage: &UsageSum) {
        self.total.add(usage);
        self.days.entry(text(row, 0)).or_default().add(usage);
        self.agents.entry(text(row, 1)).or_default().add(usage);
    }
}

/// Collects rows.
struct Rows(Vec<Vec<SqlValue>>);

impl RowSink for Rows {
    fn columns(&mut self, _: Vec<String>) {}

    fn row(&mut self, values: Vec<SqlValue>) -> bool {
        self.0.push(values);
        true
    }
}

async fn rows(
    store: &dyn StoreAdmin,
    sql: &str,
    parameters: &[SqlValue],
) -> Result<Vec<Vec<SqlValue>>, SelectError> {
    let limits =
        SelectLimits { rows: usize::MAX, time: Duration::from_secs(600), memory: 2 * 1024 * 1024 * 1024 };
    let mut rows = Rows(Vec::new());
    store.select(sql, parameters, limits, &mut rows).await?;
    Ok(rows.0)
}

fn number(row: &[SqlValue], index: usize) -> u64 {
    match row.get(index) {
        Some(SqlValue::Integer(number)) => u64::try_from(*number).unwrap_or(0),
        _ => 0,
    }
}

fn text(row: &[SqlValue], index: usize) -> String {
    match row.get(index) {
        Some(SqlValue::Text(text)) => text.clone(),
        _ => String::new(),
    }
}

fn print_total(sums: &Sums) {
    let Sums { sessions, total, .. } = sums;
    let tokens = total.input_tokens + total.output_tokens;
    let line = Text::new().add(Role::Heading, counted(*sessions, "session")).plain(", ");
    let line =
        line.plain(format!("{}, {}", counted(total.requests, "request"), counted(total.calls, "call")));
    terminal::line(&line);
    let (input, output) = (grouped(total.input_tokens), grouped(total.output_tokens));
    let mut parts = vec![format!("{} tokens ({input} in, {output} out)", grouped(tokens))];
    // Without prices the cost is not known.
    if total.money_micros > 0 {
        parts.push(format!("cost {}", money(total.money_micros)));
    }
    parts.push(format!("{} failed, {}", counted(total.failures, "request"), counted(total.retries, "retry")));
    parts.push(format!("{} failed", counted(total.failed_calls, "call")));
    println!("{}", parts.join("; "));
    let (model, calls) =
        (Duration::from_millis(total.model_millis), Duration::from_millis(total.call_millis));
    println!("{} waiting for models, {} in calls", duration(model), duration(calls));
}

fn counted(number: u64, noun: &str) -> String {
    match (number, noun.strip_suffix('y')) {
        (1, _) => format!("1 {noun}"),
        (_, Some(stem)) => format!("{number} {stem}ies"),
        (_, None) => format!("{number} {noun}s"),
    }
}

fn print_table(name: &str, title: &str, rows: &BTreeMap<String, UsageSum>) {
    let plain = |text: String| Text::new().plain(text);
    let failed = |number: u64| match number {
        0 => Text::new().add(Role::Dim, "0"),
        number => Text::new().add(Role::Failure, number.to_string()),
    };
    let key = |key: &str| Text::new().add(Role::Accent, if key.is_empty() { "(unnamed)" } else { key });
    let time = |millis: u64| plain(duration(Duration::from_millis(millis)));
    if name == "tool" {
        let mut table = Table::new([title, "CALLS", "FAILED", "REPEATED", "TIME"]).leave_out([3, 2], ROOM);
        for column in 1..4 {
            table = table.align_right(column);
        }
        for (tool, usage) in rows {
            table.row([
                key(tool),
                plain(usage.calls.to_string()),
                failed(usage.failed_calls),
                plain(usage.repeated_calls.to_string()),
                time(usage.call_millis),
            ]);
        }
        table.print();
        return;
    }
    let mut table =
        Table::new([title, "REQUESTS", "FAILED", "RETRIED", "IN", "OUT", "COST", "CALLS", "TIME"]);
    for column in 1..8 {
        table = table.align_right(column);
    }
    let has_cost = rows.values().any(|usage| usage.money_micros > 0);
    // What matters least is left out first.
    table = table.leave_out([3, 7, 2, 6, 1], ROOM).without((!has_cost).then_some(6));
    for (name, usage) in rows {
        table.row([
            key(name),
            plain(usage.requests.to_string()),
            failed(usage.failures),
            plain(usage.retries.to_string()),
            plain(grouped(usage.input_tokens)),
            plain(grouped(usage.output_tokens)),
            plain(money(usage.money_micros)),
            plain(usage.calls.to_string()),
            time(usage.model_millis + usage.call_millis),
        ]);
    }
    table.print();
}
