//! Lines for records that only programs need, for `log --all` and `log --kind`.

use backstitch::journal::{Record, RecordBody, Role};
use backstitch::one_line;

use super::super::calls::cost;
use super::super::place::short;

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
