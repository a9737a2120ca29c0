//! What sessions used. The numbers come from the views of `docs/query.md`.

use std::time::Duration;

use crate::ports::{RowSink, SelectError, SelectLimits, SqlValue};
use crate::report::{UsageKey, UsageReport, UsageRow, UsageSum};
use crate::runtime::Runtime;
use crate::time::Timestamp;

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

/// Limits of a query. All rows are needed, and a large store takes long.
const LIMITS: SelectLimits =
    SelectLimits { rows: usize::MAX, time: Duration::from_secs(600), memory: 2 * 1024 * 1024 * 1024 };

impl Runtime {
    /// Adds up what the sessions of the store used since a time, by day, model, tool and agent. Sessions that are not
    /// [indexed](Self::session_index) are not counted, and their requests and calls count for an agent without a name.
    pub async fn stats(&self, since: Option<Timestamp>) -> Result<UsageReport, SelectError> {
        let since_text = since.map(|since| since.to_string()).unwrap_or_default();
        let since_text = [SqlValue::Text(since_text)];
        let mut report = UsageReport::new(since);
        for row in self.rows(SESSIONS, &since_text).await? {
            report.sessions += number(&row, 0);
        }
        let requests = self.rows(REQUESTS, &since_text).await?;
        let requests: Vec<UsedPart> = requests.iter().map(|row| UsedPart::of_requests(row)).collect();
        let calls = self.rows(CALLS, &since_text).await?;
        let calls: Vec<UsedPart> = calls.iter().map(|row| UsedPart::of_calls(row)).collect();
        let rows = |parts: &[UsedPart], key: fn(&UsedPart) -> UsageKey| {
            UsageRow::sums(parts.iter().map(|part| (key(part), part.usage)))
        };
        report.models = Some(rows(&requests, |part| UsageKey::Model(part.what.clone())));
        report.tools = Some(rows(&calls, |part| UsageKey::Tool(part.what.clone())));
        let all = [requests, calls].concat();
        all.iter().for_each(|part| report.total.add(&part.usage));
        report.days = Some(rows(&all, |part| UsageKey::Day(part.day.clone())));
        report.agents = Some(rows(&all, |part| UsageKey::Agent(part.agent.clone())));
        Ok(report)
    }

    async fn rows(&self, sql: &str, parameters: &[SqlValue]) -> Result<Vec<Vec<SqlValue>>, SelectError> {
        let mut rows = Rows(Vec::new());
        self.store.admin.select(sql, parameters, LIMITS, &mut rows).await?;
        Ok(rows.0)
    }
}

/// What an agent used of one model or tool on a day.
#[derive(Clone)]
struct UsedPart {
    day: String,
    agent: String,
    what: String,
    usage: UsageSum,
}

impl UsedPart {
    fn of_requests(row: &[SqlValue]) -> Self {
        let usage = UsageSum {
            requests: number(row, 3),
            failures: number(row, 4),
            retries: number(row, 5),
            input_tokens: number(row, 6),
            output_tokens: number(row, 7),
            money_micros: number(row, 8),
            model_millis: number(row, 9),
            ..UsageSum::default()
        };
        Self::new(row, usage)
    }

    fn of_calls(row: &[SqlValue]) -> Self {
        let usage = UsageSum {
            calls: number(row, 3),
            failed_calls: number(row, 4),
            repeated_calls: number(row, 5),
            call_millis: number(row, 6),
            ..UsageSum::default()
        };
        Self::new(row, usage)
    }

    fn new(row: &[SqlValue], usage: UsageSum) -> Self {
        Self { day: text(row, 0), agent: text(row, 1), what: text(row, 2), usage }
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
