//! What sessions used. The numbers come from the views of `docs/query.md`.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::ports::{RowSink, SelectError, SelectLimits, SqlValue, StoreError};
use crate::report::{QueryRow, UsageKey, UsageReport, UsageRow, UsageSum};
use crate::runtime::Runtime;
use crate::time::Timestamp;

/// Requests by day, agent and model.
const REQUESTS: &str = "SELECT date(started_at, 'localtime') AS day, coalesce(sessions.agent, '') AS agent,
    coalesce(provider || ':' || model, '') AS what, count(*) AS requests,
    coalesce(sum(failures), 0) AS failures, coalesce(sum(retries), 0) AS retries,
    coalesce(sum(requests.input_tokens), 0) AS input_tokens,
    coalesce(sum(requests.output_tokens), 0) AS output_tokens,
    coalesce(sum(requests.money_micros), 0) AS money_micros, coalesce(sum(millis), 0) AS model_millis,
    0 AS calls, 0 AS failed_calls, 0 AS repeated_calls, 0 AS call_millis
    FROM requests LEFT JOIN sessions ON sessions.session = requests.session
    WHERE started_at >= ?1 GROUP BY 1, 2, 3";

/// Calls by day, agent and tool.
const CALLS: &str = "SELECT date(coalesce(started_at, asked_at), 'localtime') AS day,
    coalesce(sessions.agent, '') AS agent, coalesce(tool, '') AS what, count(*) AS calls,
    coalesce(sum(status = 'failed'), 0) AS failed_calls,
    coalesce(sum(max(attempts - 1, 0)), 0) AS repeated_calls, coalesce(sum(millis), 0) AS call_millis,
    0 AS requests, 0 AS failures, 0 AS retries, 0 AS input_tokens, 0 AS output_tokens, 0 AS money_micros,
    0 AS model_millis
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
        for row in self.rows::<BTreeMap<String, u64>>(SESSIONS, &since_text).await? {
            report.sessions += row.values().sum::<u64>();
        }
        let requests: Vec<UsedPart> = self.rows(REQUESTS, &since_text).await?;
        let calls: Vec<UsedPart> = self.rows(CALLS, &since_text).await?;
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

    async fn rows<T: DeserializeOwned>(
        &self,
        sql: &str,
        parameters: &[SqlValue],
    ) -> Result<Vec<T>, SelectError> {
        let mut sink = Rows::default();
        self.store.admin.select(sql, parameters, LIMITS, &mut sink).await?;
        let rows = sink.rows.into_iter().map(|row| serde_json::from_value(Value::Object(row)));
        rows.collect::<Result<_, _>>().map_err(|error| StoreError::Backend(error.into()).into())
    }
}

/// What an agent used of one model or tool on a day.
#[derive(Clone, Deserialize)]
struct UsedPart {
    day: String,
    agent: String,
    what: String,
    #[serde(flatten)]
    usage: UsageSum,
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
        self.rows.push(QueryRow::new(&self.columns, &values).row);
        true
    }
}
