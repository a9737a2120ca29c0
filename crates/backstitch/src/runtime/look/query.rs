//! SQL that reads, over the views of `docs/query.md`, and what sessions used according to them.
//!
//! The statement runs on a thread of its own. SQLite looks at the clock between its steps, but a single step can take very long; so
//! the operation also watches the clock itself, and ends without the thread.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use tokio::runtime::Handle;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::time::{Instant, timeout_at};

use crate::budget::Amounts;
use crate::ports::{RowSink, SelectError, SelectLimits, SelectedRows, SqlValue, StoreError};
use crate::report::{QueryRow, UsageKey, UsageReport, UsageRow, UsageSum};
use crate::runtime::Runtime;
use crate::stores::StoreAddress;
use crate::time::Timestamp;

/// How long the thread may need to end after its time is over.
const GRACE: Duration = Duration::from_secs(2);

/// Requests by day, agent and model. Like the other statements, it is one of SQLite and of PostgreSQL.
const REQUESTS: &str = "SELECT coalesce({day}, '') AS day,
    coalesce(sessions.agent, '') AS agent, coalesce(CAST(sessions.tags AS text), '{}') AS tags,
    coalesce(provider || ':' || model, '') AS what, count(*) AS requests,
    coalesce(sum(failures), 0) AS failures, coalesce(sum(retries), 0) AS retries,
    coalesce(sum(requests.input_tokens), 0) AS input_tokens,
    coalesce(sum(requests.output_tokens), 0) AS output_tokens,
    coalesce(sum(requests.money_micros), 0) AS money_micros,
    sum(CASE WHEN requests.money_micros = 0 AND requests.input_tokens + requests.output_tokens > 0 THEN 1 ELSE 0 END)
        AS unpriced_requests,
    coalesce(sum(millis), 0) AS model_millis,
    0 AS calls, 0 AS failed_calls, 0 AS repeated_calls, 0 AS call_millis
    FROM requests LEFT JOIN sessions ON sessions.session = requests.session
    WHERE started_at >= $1 GROUP BY 1, 2, 3, 4";

/// Calls by day, agent and tool.
const CALLS: &str = "SELECT coalesce({day}, '') AS day,
    coalesce(sessions.agent, '') AS agent, coalesce(CAST(sessions.tags AS text), '{}') AS tags, coalesce(tool, '') AS what,
    count(*) AS calls,
    sum(CASE WHEN status = 'failed' THEN 1 ELSE 0 END) AS failed_calls,
    sum(CASE WHEN attempts > 1 THEN attempts - 1 ELSE 0 END) AS repeated_calls, coalesce(sum(millis), 0) AS call_millis,
    0 AS requests, 0 AS failures, 0 AS retries, 0 AS input_tokens, 0 AS output_tokens, 0 AS money_micros,
    0 AS model_millis
    FROM calls LEFT JOIN sessions ON sessions.session = calls.session
    WHERE coalesce(started_at, asked_at) >= $1 GROUP BY 1, 2, 3, 4";

/// What was charged since midnight. The charge for a call of a sub-agent repeats what the sub-agent was charged.
const TODAY: &str = "SELECT coalesce(sum(CAST(data -> 'amounts' ->> 'input_tokens' AS numeric)), 0) AS input_tokens,
    coalesce(sum(CAST(data -> 'amounts' ->> 'output_tokens' AS numeric)), 0) AS output_tokens,
    coalesce(sum(CAST(data -> 'amounts' ->> 'money_micros' AS numeric)), 0) AS money_micros,
    coalesce(sum(CAST(data -> 'amounts' ->> 'turns' AS numeric)), 0) AS turns
    FROM records WHERE kind = 'budget_charged' AND coalesce(CAST(data -> 'amounts' ->> 'calls' AS numeric), 0) = 0
    AND at >= {midnight}";

/// Sessions that changed.
const SESSIONS: &str = "SELECT count(*) FROM sessions WHERE updated_at >= $1";

/// Limits of a query. All rows are needed, and a large store takes long.
const LIMITS: SelectLimits =
    SelectLimits { rows: usize::MAX, time: Duration::from_secs(600), memory: 2 * 1024 * 1024 * 1024 };

/// A message of the thread that reads.
enum Message {
    Columns(Vec<String>),
    Row(Vec<SqlValue>),
    End(Result<SelectedRows, SelectError>),
}

/// Sends rows to the task that waits for them.
struct ToChannel(UnboundedSender<Message>);

impl RowSink for ToChannel {
    fn columns(&mut self, names: Vec<String>) {
        let _ = self.0.send(Message::Columns(names));
    }

    fn row(&mut self, values: Vec<SqlValue>) -> bool {
        self.0.send(Message::Row(values)).is_ok()
    }
}

impl Runtime {
    /// Executes one SQL statement that reads, and passes its rows on as they are read. The view of sessions reads the index, so
    /// sessions that are not [indexed](Self::session_index) are missing in it.
    pub async fn query(
        &self,
        sql: &str,
        limits: SelectLimits,
        sink: &mut (dyn RowSink + Send),
    ) -> Result<SelectedRows, SelectError> {
        let (sender, mut receiver) = unbounded_channel();
        let (admin, runtime, sql) = (self.store.admin.clone(), Handle::current(), sql.to_owned());
        let end = Instant::now().checked_add(limits.time.saturating_add(GRACE));
        // The thread is not joined: it may be inside of a step that never ends, and it only reads.
        std::thread::spawn(move || {
            let mut rows = ToChannel(sender.clone());
            let done = runtime.block_on(admin.select(&sql, &[], limits, &mut rows));
            let _ = sender.send(Message::End(done));
        });
        let mut passed = 0;
        loop {
            let message = match end {
                Some(end) => timeout_at(end, receiver.recv()).await.unwrap_or_default(),
                None => receiver.recv().await,
            };
            match message {
                Some(Message::Columns(names)) => sink.columns(names),
                Some(Message::Row(values)) => {
                    passed += 1;
                    if !sink.row(values) {
                        return Ok(SelectedRows { rows: passed, is_cut: false });
                    }
                }
                Some(Message::End(done)) => return done,
                None => return Err(SelectError::TooLong { limit: limits.time }),
            }
        }
    }

    /// Adds up what the sessions of the store used since a time, by day, model, tool and agent. Sessions that are not
    /// [indexed](Self::session_index) are not counted, and their requests and calls count for an agent without a name.
    pub async fn stats(&self, since: Option<Timestamp>) -> Result<UsageReport, SelectError> {
        let since_text = since.map(|since| since.to_string()).unwrap_or_default();
        let since_text = [SqlValue::Text(since_text)];
        let mut report = UsageReport::new(since);
        for row in self.rows::<BTreeMap<String, u64>>(SESSIONS, &since_text).await? {
            report.sessions += row.values().sum::<u64>();
        }
        let requests = REQUESTS.replace("{day}", &self.day_of("started_at"));
        let calls = CALLS.replace("{day}", &self.day_of("coalesce(started_at, asked_at)"));
        let requests: Vec<UsedPart> = self.rows(&requests, &since_text).await?;
        let calls: Vec<UsedPart> = self.rows(&calls, &since_text).await?;
        let rows = |parts: &[UsedPart], key: fn(&UsedPart) -> UsageKey| {
            UsageRow::sums(parts.iter().map(|part| (key(part), part.usage)))
        };
        report.models = Some(rows(&requests, |part| UsageKey::Model(part.what.clone())));
        report.tools = Some(rows(&calls, |part| UsageKey::Tool(part.what.clone())));
        let all = [requests, calls].concat();
        all.iter().for_each(|part| report.total.add(&part.usage));
        report.days = Some(rows(&all, |part| UsageKey::Day(part.day.clone())));
        report.agents = Some(rows(&all, |part| UsageKey::Agent(part.agent.clone())));
        let tagged = all.iter().flat_map(|part| part.tags().map(move |tag| (UsageKey::Tag(tag), part.usage)));
        report.tags = Some(UsageRow::sums(tagged));
        Ok(report)
    }

    /// Adds up what the sessions of the store were charged since midnight: tokens, money and turns. Days are those of the local time zone, and of UTC
    /// for a store in a server, which programs in several zones share.
    pub async fn spent_today(&self) -> Result<Amounts, SelectError> {
        let midnight = match self.has_local_days() {
            true => "strftime('%Y-%m-%dT%H:%M:%S', 'now', 'localtime', 'start of day', 'utc')",
            false => "to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD')",
        };
        let rows: Vec<Amounts> = self.rows(&TODAY.replace("{midnight}", midnight), &[]).await?;
        Ok(rows.into_iter().fold(Amounts::ZERO, Amounts::plus))
    }

    fn has_local_days(&self) -> bool {
        matches!(self.store.address, StoreAddress::File(_) | StoreAddress::Memory)
    }

    /// Returns SQL for the day of a time.
    fn day_of(&self, time: &str) -> String {
        match self.has_local_days() {
            true => format!("date({time}, 'localtime')"),
            false => format!("substr({time}, 1, 10)"),
        }
    }

    async fn rows<T: DeserializeOwned>(
        &self,
        sql: &str,
        parameters: &[SqlValue],
    ) -> Result<Vec<T>, SelectError> {
        let mut sink = Rows::default();
        self.store.admin.select(sql, parameters, LIMITS, &mut sink).await?;
        let rows = sink.rows.into_iter().map(|row| serde_json::from_value(Value::Object(row)));
        rows.collect::<Result<Vec<T>, _>>().map_err(|error| StoreError::Backend(error.into()).into())
    }
}

/// What an agent used of one model or tool on a day.
#[derive(Clone, Deserialize)]
struct UsedPart {
    day: String,
    agent: String,
    /// The tags of the session, as JSON.
    tags: Value,
    what: String,
    #[serde(flatten)]
    usage: UsageSum,
}

impl UsedPart {
    /// Returns the tags of the session, each as `KEY=VALUE`.
    fn tags(&self) -> impl Iterator<Item = String> {
        let tags = match &self.tags {
            Value::String(text) => serde_json::from_str(text).unwrap_or_default(),
            other => serde_json::from_value::<BTreeMap<String, String>>(other.clone()).unwrap_or_default(),
        };
        tags.into_iter().map(|(key, value)| format!("{key}={value}"))
    }
}

/// Collects rows by the names of their columns.
#[derive(Default)]
struct Rows {
    columns: Vec<String>,
    rows: Vec<Map<String, Value>>,
}

impl RowSink for Rows {
    fn columns(&mut self, names: Vec<String>) {
        self.columns = names;
    }

    fn row(&mut self, values: Vec<SqlValue>) -> bool {
        // A sum that is not a count, of numbers that a server made up, counts nothing. It does not fail the whole report.
        let counted = |value: SqlValue| match value {
            SqlValue::Integer(number) => SqlValue::Integer(number.max(0)),
            SqlValue::Real(_) => SqlValue::Integer(0),
            other => other,
        };
        let values: Vec<SqlValue> = values.into_iter().map(counted).collect();
        self.rows.push(QueryRow::new(&self.columns, &values).row);
        true
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn sums_that_are_not_counts_count_nothing() {
        let mut rows = Rows::default();
        rows.columns(["day", "tokens", "calls", "millis"].map(str::to_owned).to_vec());
        rows.row(vec![
            SqlValue::Text("2026-08-01".to_owned()),
            SqlValue::Integer(7),
            SqlValue::Integer(-1),
            SqlValue::Real(1e19),
        ]);
        let row = json!({ "day": "2026-08-01", "tokens": 7, "calls": 0, "millis": 0 });
        assert_eq!(rows.rows.into_iter().map(Value::Object).collect::<Vec<_>>(), [row]);
    }
}
