//! What sessions used, by day, model, tool and agent.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::report::Version;
use crate::time::Timestamp;

/// What sessions used. Requests are counted in the session that sent them, so nothing of a sub-agent counts twice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UsageReport {
    /// Version of the form.
    pub v: Version,
    /// Only what happened since then is counted.
    pub since: Option<Timestamp>,
    /// The number of sessions.
    pub sessions: u64,
    /// The sum.
    pub total: UsageSum,
    /// Stores that could not be read, with the reason.
    pub unreadable: Vec<String>,
    /// By day, in the local time zone; `None` is left out, like that of the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub days: Option<Vec<UsageRow>>,
    /// By model: requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub models: Option<Vec<UsageRow>>,
    /// By tool: calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<UsageRow>>,
    /// By the name of the agent. An agent without a name has an empty one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agents: Option<Vec<UsageRow>>,
    /// By tag of the session, as `KEY=VALUE`. What a session with several tags used counts for each of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<UsageRow>>,
}

impl UsageReport {
    /// Creates a report in which nothing is counted, with all tables.
    pub fn new(since: Option<Timestamp>) -> Self {
        Self {
            v: Version,
            since,
            sessions: 0,
            total: UsageSum::default(),
            unreadable: Vec::new(),
            days: Some(Vec::new()),
            models: Some(Vec::new()),
            tools: Some(Vec::new()),
            agents: Some(Vec::new()),
            tags: Some(Vec::new()),
        }
    }

    /// Adds what the sessions of another store used.
    pub fn add(&mut self, other: Self) {
        self.sessions += other.sessions;
        self.total.add(&other.total);
        self.unreadable.extend(other.unreadable);
        for (own, more) in [
            (&mut self.days, other.days),
            (&mut self.models, other.models),
            (&mut self.tools, other.tools),
            (&mut self.agents, other.agents),
            (&mut self.tags, other.tags),
        ] {
            let rows = own.take().into_iter().chain(more).flatten();
            *own = Some(UsageRow::sums(rows.map(|row| (row.of, row.usage))));
        }
    }
}

/// What was used of something, or on a day.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UsageRow {
    /// The day, the model, the tool or the agent.
    #[serde(flatten)]
    pub of: UsageKey,
    /// What was used.
    #[serde(flatten)]
    pub usage: UsageSum,
}

impl UsageRow {
    /// Adds up what has the same key. The rows are in the order of their keys.
    pub(crate) fn sums(parts: impl IntoIterator<Item = (UsageKey, UsageSum)>) -> Vec<Self> {
        let mut sums: BTreeMap<UsageKey, UsageSum> = BTreeMap::new();
        for (of, usage) in parts {
            sums.entry(of).or_default().add(&usage);
        }
        sums.into_iter().map(|(of, usage)| Self { of, usage }).collect()
    }
}

/// What a row is about. As JSON it is a field of the row.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum UsageKey {
    /// A day, as `2026-01-31`.
    Day(String),
    /// A model, as `PROVIDER:MODEL`.
    Model(String),
    /// A tool.
    Tool(String),
    /// An agent.
    Agent(String),
    /// A tag, as `KEY=VALUE`.
    Tag(String),
}

impl UsageKey {
    /// Returns the text without what it is.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Day(text) | Self::Model(text) | Self::Tool(text) | Self::Agent(text) | Self::Tag(text) => {
                text
            }
        }
    }
}

/// A sum of what was used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UsageSum {
    /// Requests to models.
    pub requests: u64,
    /// Attempts at requests that failed.
    pub failures: u64,
    /// Attempts at requests after the first.
    pub retries: u64,
    /// Tokens that were sent.
    pub input_tokens: u64,
    /// Tokens that were received.
    pub output_tokens: u64,
    /// Money, in millionths of the unit of the prices.
    pub money_micros: u64,
    /// Requests with tokens and without a cost: the price of their model was not known, or zero.
    #[serde(default)]
    pub unpriced_requests: u64,
    /// Time spent waiting for models, in milliseconds.
    pub model_millis: u64,
    /// Calls of tools.
    pub calls: u64,
    /// Calls that failed.
    pub failed_calls: u64,
    /// Attempts at calls after the first.
    pub repeated_calls: u64,
    /// Time spent in calls, in milliseconds.
    pub call_millis: u64,
}

impl UsageSum {
    /// Adds another sum.
    pub fn add(&mut self, other: &Self) {
        self.requests += other.requests;
        self.failures += other.failures;
        self.retries += other.retries;
        self.input_tokens += other.input_tokens;
        self.output_tokens += other.output_tokens;
        self.money_micros += other.money_micros;
        self.unpriced_requests += other.unpriced_requests;
        self.model_millis += other.model_millis;
        self.calls += other.calls;
        self.failed_calls += other.failed_calls;
        self.repeated_calls += other.repeated_calls;
        self.call_millis += other.call_millis;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn report(tool: &str, calls: u64) -> UsageReport {
        let usage = UsageSum { calls, ..UsageSum::default() };
        let tools = UsageRow::sums([(UsageKey::Tool(tool.to_owned()), usage)]);
        UsageReport { sessions: 1, total: usage, tools: Some(tools), ..UsageReport::new(None) }
    }

    #[test]
    fn rows_of_several_stores_are_added_by_their_keys() {
        let mut sum = report("shell", 2);
        sum.add(report("read_file", 3));
        sum.add(report("shell", 4));
        assert_eq!((sum.sessions, sum.total.calls), (3, 9));
        let json = serde_json::to_value(&sum).unwrap();
        let rows: Vec<_> =
            json["tools"].as_array().unwrap().iter().map(|row| (&row["tool"], &row["calls"])).collect();
        assert_eq!(rows, [(&json!("read_file"), &json!(3)), (&json!("shell"), &json!(6))]);
        assert_eq!(serde_json::from_value::<UsageReport>(json).unwrap(), sum);
    }
}
