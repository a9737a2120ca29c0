//! Which records a log has, and lines for those that only programs need.

use backstitch_runtime::{describe, message_text, one_line};

use crate::budget::Amounts;
use crate::journal::{CallVerdict, EvaluationOutcome, Record, RecordBody, Role};
use crate::ports::FilePath;
use crate::time::Timestamp;

/// Begin of the name of the step that compares the tools of an MCP server with the recorded ones.
const COMPARED: &str = "compare the tools of ";

/// A selection of records. By default, they are those that describe themselves to people.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LogFilter {
    /// Selects also records that only programs need.
    pub all: bool,
    /// Selects only failures: of attempts to reach the model, of calls and of evaluations.
    pub failed: bool,
    /// Selects only records since a time.
    pub since: Option<Timestamp>,
    /// Selects only records of these kinds; any, if there are none. They may be of those that only programs need.
    pub kinds: Vec<String>,
    /// Selects only records of calls that changed this path or something below it. Of calls that end while the log is followed,
    /// only their ends are selected.
    pub file: Option<FilePath>,
}

impl LogFilter {
    /// Returns the line for a record that is selected, whatever the calls have changed.
    pub fn text(&self, record: &Record) -> Option<String> {
        let is_selected = self.since.is_none_or(|since| record.at >= since)
            && (self.kinds.is_empty() || self.kinds.iter().any(|kind| kind == record.body.kind()))
            && (!self.failed || is_failure(&record.body));
        if !is_selected {
            return None;
        }
        let text = describe(record).or_else(|| changed_tools(record));
        let is_complete = self.all || !self.kinds.is_empty();
        if is_complete { text.or_else(|| Some(words(record))) } else { text }
    }
}

/// Whether a record says that something failed.
pub fn is_failure(body: &RecordBody) -> bool {
    match body {
        RecordBody::RequestFailed(_) => true,
        RecordBody::CallFinished(finished) => finished.outcome == CallVerdict::Failed,
        RecordBody::EvaluationFinished(finished) => finished.outcome == EvaluationOutcome::Failed,
        RecordBody::SessionStopped(stopped) => stopped.kind.is_some(),
        _ => false,
    }
}

/// Describes a record that the tools of an MCP server have changed.
fn changed_tools(record: &Record) -> Option<String> {
    let RecordBody::StepFinished(step) = &record.body else { return None };
    let server = step.name.strip_prefix(COMPARED)?;
    let value = serde_json::to_value(&step.value).ok()?;
    let named = ["added", "removed", "changed"].into_iter().filter_map(|what| {
        let names: Vec<&str> = value[what].as_array()?.iter().filter_map(|name| name.as_str()).collect();
        Some(format!("{what} {}", names.join(", ")))
    });
    let named: Vec<String> = named.collect();
    Some(format!("  MCP server {server} has other tools: {}", one_line(&named.join("; "), 400)))
}

/// Describes a record of any kind.
fn words(record: &Record) -> String {
    match &record.body {
        RecordBody::RequestStarted(started) => {
            format!("  request to {}:{}, {} bytes", started.provider, started.model, started.length)
        }
        RecordBody::RequestFinished(finished) => {
            let cost = cost(&finished.usage);
            let cost = if cost.is_empty() { cost } else { format!(": {cost}") };
            format!("  answered in {} ms{cost}", finished.elapsed_millis)
        }
        RecordBody::MessageAppended(message) => {
            let text = one_line(&message_text(message), 90);
            match message.role() {
                Role::System => format!("system message: {text}"),
                Role::Tool => format!("  result: {text}"),
                Role::User | Role::Assistant => format!("message: {text}"),
            }
        }
        RecordBody::CallStarted(started) => {
            let id = started.call_id.to_string();
            format!("  {} starts [{}]", started.name, id.rsplit('-').next().unwrap_or(&id))
        }
        RecordBody::StepFinished(step) => {
            format!("  step {} done: {}", step.name, one_line(&step.value.to_string(), 80))
        }
        RecordBody::ProcessStarted(process) => {
            format!("  process {} starts {}", process.group, one_line(&process.program, 80))
        }
        RecordBody::BudgetCharged(charged) => {
            let cost = cost(&charged.amounts);
            format!("  charged: {}", if cost.is_empty() { "no tokens" } else { &cost })
        }
        RecordBody::WorkspaceObserved(_) => "files captured".to_owned(),
        other => other.kind().replace('_', " "),
    }
}

/// Formats tokens and money; empty if there are none.
pub fn cost(amounts: &Amounts) -> String {
    let mut parts = Vec::new();
    if amounts.total_tokens() > 0 {
        parts.push(format!("{} tokens", amounts.total_tokens()));
    }
    if amounts.money_micros > 0 {
        parts.push(money(amounts.money_micros));
    }
    parts.join(", ")
}

/// Formats millionths of the unit of the prices exactly, with at least two digits after the point.
pub fn money(micros: u64) -> String {
    let text = format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000);
    let shortest = text.find('.').map_or(text.len(), |point| point + 3);
    let end = text.trim_end_matches('0').len().max(shortest);
    text[..end].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_is_exact() {
        let amounts = [0, 12, 100, 12_345, 2_500_000, 1_234_560_000].map(money);
        assert_eq!(amounts, ["0.00", "0.000012", "0.0001", "0.012345", "2.50", "1234.56"]);
    }
}
