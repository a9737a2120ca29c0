//! What a transcript of Codex shows of its calls, requests and texts.

use std::path::Path;

use backstitch_core::budget::Amounts;
use backstitch_runtime::{ObservedCall, ObservedRequest, ObservedResult};
use serde_json::Value;

use super::records::records;
use super::{END, RECENT, by_id};
use crate::fields::text;
use crate::program::Program;

/// What Codex says to its model about a command that continues in the background.
const STILL_RUNS: &str = "Process running with session ID";

/// How the outputs begin that Codex gives its model for calls that it did not run, or could not.
const FAILED: [&str; 4] =
    ["exec_command failed", "patch rejected", "apply_patch verification failed", "aborted"];

/// Returns the results of calls.
pub(super) fn results(records: &[Value]) -> Vec<(ObservedCall, ObservedResult)> {
    let results = records.iter().filter_map(result_of);
    let with_failure = |(id, outcome): (&str, Result<Value, String>)| {
        let failure = records.iter().rev().find_map(|record| failure_of_item(record, id));
        let outcome = failure.map_or(outcome, Err);
        by_id(id, ObservedResult { outcome, elapsed_micros: None })
    };
    results.map(with_failure).collect()
}

fn result_of(record: &Value) -> Option<(&str, Result<Value, String>)> {
    let payload = record.get("payload")?;
    let id = text(payload, "call_id").filter(|_| {
        let kind = text(payload, "type").unwrap_or_default();
        kind.ends_with("_call_output")
    })?;
    let output = payload.get("output").cloned().unwrap_or(Value::Null);
    let shown = output.as_str().map_or_else(|| output.to_string(), str::to_owned);
    // A command that continues in the background has not ended.
    if shown.contains(STILL_RUNS) {
        return None;
    }
    let has_failed = FAILED.iter().any(|beginning| shown.starts_with(beginning));
    Some((id, if has_failed { Err(shown) } else { Ok(output) }))
}

/// Returns how a command of Codex failed, which its hooks do not report. `None` if the transcript does not say that it did.
pub fn failure_of_command(path: &Path, call: &str) -> Option<String> {
    let records = records(path, Some(END), |line| line.contains("item_completed") && line.contains(call))?;
    records.iter().rev().find_map(|record| failure_of_item(record, call))
}

/// Returns why an item failed, if it is the one of the call.
fn failure_of_item(record: &Value, call: &str) -> Option<String> {
    let item = record.pointer("/payload/item")?;
    if text(item, "id")? != call {
        return None;
    }
    let code = item.get("exit_code").and_then(Value::as_i64);
    let status = text(item, "status").unwrap_or_default();
    let reason = match code {
        Some(0) => return None,
        Some(code) => format!("Exit code {code}"),
        None if status == "failed" || status == "declined" => format!("it {status}"),
        None => return None,
    };
    let texts = ["aggregated_output", "stderr", "stdout"];
    let output = texts.iter().filter_map(|name| text(item, name)).find(|text| !text.is_empty());
    Some(output.map_or_else(|| reason.clone(), |output| format!("{reason}\n{output}")))
}

/// Returns the requests. Sub-agents have transcripts of their own, which their ends report.
pub(super) fn requests(path: &Path) -> Vec<ObservedRequest> {
    // The model is named where a turn begins.
    let is_wanted = |line: &str| line.contains("\"token_usage_record\"") || line.contains("\"turn_context\"");
    let mut model = None;
    let mut requests = Vec::new();
    for record in records(path, None, is_wanted).unwrap_or_default() {
        let Some(payload) = record.get("payload") else { continue };
        if let Some(named) = text(payload, "model") {
            model = Some(named.to_owned());
        }
        let (Some(usage), Some(id)) = (payload.get("usage"), text(payload, "response_id")) else { continue };
        requests.push(ObservedRequest {
            id: id.to_owned(),
            provider: Program::Codex.provider().to_owned(),
            model: model.clone().unwrap_or_else(|| "unknown".to_owned()),
            usage: amounts(usage),
        });
    }
    requests
}

fn amounts(usage: &Value) -> Amounts {
    let number = |name: &str| usage.get(name).and_then(Value::as_u64).unwrap_or(0);
    Amounts {
        input_tokens: number("input_tokens"),
        cache_read_tokens: number("cached_input_tokens"),
        cache_write_tokens: number("cache_write_input_tokens"),
        output_tokens: number("output_tokens"),
        reasoning_tokens: number("reasoning_output_tokens"),
        ..Amounts::ZERO
    }
}

/// Returns the texts of an answer before its first call, if this is that call. The messages of an answer come before its calls;
/// prompts, results and earlier calls end what belongs to it.
pub(super) fn texts_before(path: &Path, call: &str) -> Vec<String> {
    let records = records(path, Some(RECENT), |line| line.contains("\"response_item\"")).unwrap_or_default();
    let of_call = |record: &Value| record.get("payload").and_then(|it| text(it, "call_id")) == Some(call);
    let Some(made) = records.iter().rposition(of_call) else { return Vec::new() };
    let mut texts = Vec::new();
    for payload in records[..made].iter().rev().map(|record| record.get("payload").unwrap_or(&Value::Null)) {
        match (text(payload, "type").unwrap_or_default(), text(payload, "role").unwrap_or_default()) {
            ("message", "assistant") => {
                let content_text = payload.pointer("/content/0/text").and_then(Value::as_str);
                texts.extend(content_text.map(str::to_owned));
            }
            ("reasoning", _) => {}
            (kind, _) if kind.ends_with("_call") => return Vec::new(),
            _ => break,
        }
    }
    texts.reverse();
    texts
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn output(call: &str, output: &str) -> Value {
        json!({"type": "response_item", "payload": {"type": "function_call_output", "call_id": call, "output": output}})
    }

    #[test]
    fn results_have_the_failures_that_only_items_report() {
        let item = json!({"id": "c2", "exit_code": 3, "aggregated_output": "no rule", "status": "failed"});
        let records = [
            output("c1", "fine"),
            output("c2", "no rule"),
            output("c3", "aborted by user"),
            output("c4", "Process running with session ID 7"),
            json!({"type": "event_msg", "payload": {"type": "item_completed", "item": item}}),
            json!({"payload": {"type": "function_call_output", "call_id": 7}}),
            json!(null),
        ];
        let results: Vec<_> =
            results(&records).into_iter().map(|(call, result)| (call.id, result.outcome)).collect();
        let expected = [
            ("c1".to_owned(), Ok(json!("fine"))),
            ("c2".to_owned(), Err("Exit code 3\nno rule".to_owned())),
            ("c3".to_owned(), Err("aborted by user".to_owned())),
        ];
        assert_eq!(results, expected);
    }

    #[test]
    fn requests_have_the_model_of_their_turn() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("rollout.jsonl");
        let used = |id: &str| json!({"type": "token_usage_record", "payload": {"response_id": id, "usage": {"input_tokens": 9}}});
        let turn = |model: &str| json!({"type": "turn_context", "payload": {"model": model}});
        let lines = [used("r0"), turn("one"), used("r1"), turn("two"), used("r2")];
        std::fs::write(&path, lines.map(|line| format!("{line}\n")).concat()).unwrap();
        let requests = requests(&path);
        let seen: Vec<_> = requests.iter().map(|request| (&*request.id, &*request.model)).collect();
        assert_eq!(seen, [("r0", "unknown"), ("r1", "one"), ("r2", "two")]);
    }
}
