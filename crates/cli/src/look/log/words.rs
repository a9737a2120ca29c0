//! Lines for records that only programs need, for `log --all` and `log --kind`.

use backstitch::host::one_line;
use backstitch::journal::{Record, RecordBody, Role};

use super::super::calls::cost;
use crate::open::place::short;

/// Begin of the name of the step that compares the tools of an MCP server with the recorded ones.
const COMPARED: &str = "compare the tools of ";

/// Describes a record that the tools of an MCP server have changed.
pub(super) fn changed_tools(record: &Record) -> Option<String> {
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
pub(super) fn words(record: &Record) -> String {
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
            let text = one_line(&message.content(), 90);
            match message.role() {
                Role::System => format!("system message: {text}"),
                Role::Tool => format!("  result: {text}"),
                Role::User | Role::Assistant => format!("message: {text}"),
            }
        }
        RecordBody::CallStarted(started) => format!("  {} starts [{}]", started.name, short(started.call_id)),
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
