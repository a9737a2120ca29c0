//! Items of a conversation that are calls, without IO.

use backstitch_runtime::{ObservedCall, ObservedResult};
use serde_json::{Value, json};

use crate::fields::{id, text};
use crate::relay::SERVER;

/// Returns the id of an item.
pub(super) fn id_of(item: &Value) -> Option<&str> {
    id(item, "id")
}

/// Whether an item is a call of one of the agent's own tools, which are recorded where they run.
pub(super) fn is_ours(item: &Value) -> bool {
    text(item, "type") == Some("mcpToolCall") && text(item, "server") == Some(SERVER)
}

/// Returns the call that an item is. Messages, thoughts and plans are none.
pub(super) fn call_of(item: &Value, agent: Option<&str>) -> Option<ObservedCall> {
    let (name, input) = match text(item, "type")? {
        "commandExecution" => {
            let script = script_of(text(item, "command").unwrap_or_default());
            ("Bash".to_owned(), json!({ "command": script }))
        }
        "fileChange" => {
            let changes = item.get("changes").cloned().unwrap_or(Value::Null);
            ("apply_patch".to_owned(), json!({ "changes": changes }))
        }
        "mcpToolCall" => {
            let name = format!("mcp__{}__{}", text(item, "server")?, text(item, "tool")?);
            (name, item.get("arguments").cloned().unwrap_or(Value::Null))
        }
        kind @ ("collabToolCall" | "collabAgentToolCall" | "dynamicToolCall" | "webSearch") => {
            let name = text(item, "tool").unwrap_or(kind).to_owned();
            let input =
                ["arguments", "prompt", "query"].iter().find_map(|name| Some((*name, item.get(*name)?)));
            (name, input.map_or(Value::Null, |(name, value)| json!({ name: value })))
        }
        _ => return None,
    };
    let call = ObservedCall::new(id_of(item)?, &name, input);
    Some(ObservedCall { agent: agent.map(str::to_owned), ..call })
}

/// Returns the script of a command, which Codex shows with the shell that runs it.
fn script_of(command: &str) -> String {
    match shlex::split(command).as_deref() {
        Some([_, option, script]) if option == "-lc" || option == "-c" => script.clone(),
        _ => command.to_owned(),
    }
}

/// Returns the result of a call whose item has ended.
pub(super) fn result_of(item: &Value) -> ObservedResult {
    let millis = item.get("durationMs").and_then(Value::as_u64);
    ObservedResult {
        outcome: outcome_of(item),
        elapsed_micros: millis.map(|millis| millis.saturating_mul(1_000)),
    }
}

fn outcome_of(item: &Value) -> Result<Value, String> {
    let output = text(item, "aggregatedOutput").unwrap_or_default();
    let status = text(item, "status").unwrap_or_default();
    match item.get("exitCode").and_then(Value::as_i64) {
        Some(0) => return Ok(Value::from(output)),
        Some(code) => return Err(format!("Exit code {code}\n{output}").trim_end().to_owned()),
        None => {}
    }
    let message = item.pointer("/error/message").and_then(Value::as_str);
    match (status, message) {
        (_, Some(message)) => Err(message.to_owned()),
        ("declined", None) => Err("it was not allowed".to_owned()),
        ("failed", None) => Err(if output.is_empty() { "it failed".to_owned() } else { output.to_owned() }),
        _ => Ok(value_of(item)),
    }
}

fn value_of(item: &Value) -> Value {
    if let Some(content) = item.pointer("/result/content") {
        return content.clone();
    }
    let changes = item.get("changes").and_then(Value::as_array).into_iter().flatten();
    let paths: Vec<&Value> = changes.filter_map(|change| change.get("path")).collect();
    if paths.is_empty() { Value::from("done") } else { json!({ "changed": paths }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_become_calls_and_results() {
        let command = json!({"type": "commandExecution", "id": "c1", "command": "/bin/bash -lc 'echo \"a b\" > x'", "exitCode": 3,
            "aggregatedOutput": "no rule\n", "status": "failed", "durationMs": 7, "new": {}});
        let call = call_of(&command, Some("child")).unwrap();
        assert_eq!(
            (call.id.as_str(), call.name.as_str(), call.agent.as_deref()),
            ("c1", "Bash", Some("child"))
        );
        assert_eq!(call.input, json!({"command": "echo \"a b\" > x"}));
        let result = result_of(&command);
        assert_eq!(
            (result.outcome, result.elapsed_micros),
            (Err("Exit code 3\nno rule".to_owned()), Some(7_000))
        );

        let patch = json!({"type": "fileChange", "id": "c2", "changes": [{"path": "/p/x", "diff": "+x"}], "status": "completed"});
        assert_eq!(call_of(&patch, None).unwrap().name, "apply_patch");
        assert_eq!(result_of(&patch).outcome, Ok(json!({"changed": ["/p/x"]})));
        let declined = json!({"type": "fileChange", "id": "c2", "status": "declined"});
        assert!(result_of(&declined).outcome.is_err());

        let tool = json!({"type": "mcpToolCall", "id": "c3", "server": "notes", "tool": "add", "arguments": {"t": 1},
            "result": {"content": [{"type": "text", "text": "ok"}]}, "status": "completed"});
        assert_eq!(call_of(&tool, None).unwrap().name, "mcp__notes__add");
        assert!(!is_ours(&tool) && is_ours(&json!({"type": "mcpToolCall", "server": SERVER})));
        assert_eq!(result_of(&tool).outcome, Ok(json!([{"type": "text", "text": "ok"}])));
        let failed = json!({"type": "mcpToolCall", "status": "failed", "error": {"message": "gone"}});
        assert_eq!(result_of(&failed).outcome, Err("gone".to_owned()));
    }

    #[test]
    fn strange_items_are_no_calls() {
        let long = "x".repeat(1_000);
        let strange = [
            json!({}),
            json!({"type": "agentMessage", "id": "m"}),
            json!({"type": "commandExecution"}),
            json!({"type": "commandExecution", "id": 7}),
            json!({"type": "mcpToolCall", "id": "x", "server": []}),
            json!({"type": "fileChange", "id": long}),
        ];
        for item in strange {
            assert_eq!(call_of(&item, None), None, "{item}");
        }
        let unclosed = json!({"type": "commandExecution", "id": "c", "command": "bash -lc 'x"});
        assert_eq!(call_of(&unclosed, None).unwrap().input, json!({"command": "bash -lc 'x"}));
    }
}
