//! What a transcript of Claude Code shows of its calls, requests and texts. Each block of an answer is a record, and the records
//! of one answer have its id in common.

use std::path::{Path, PathBuf};

use backstitch_runtime::{ObservedCall, ObservedRequest, ObservedResult};
use serde_json::Value;

use super::records::records;
use super::{RECENT, by_id};
use crate::fields::text;
use crate::messages::{SYNTHETIC, Usage, blocks, result_of};
use crate::program::Program;

/// The most transcripts of sub-agents.
const SUB_AGENTS: usize = 1_000;

/// Returns the results of calls.
pub(super) fn results(records: &[Value]) -> Vec<(ObservedCall, ObservedResult)> {
    let results = records.iter().flat_map(blocks).filter_map(result_of);
    results.map(|(id, result)| by_id(&id, result)).collect()
}

/// Returns the requests of a transcript and of those of its sub-agents. An answer of several blocks is there several times.
pub(super) fn requests(path: &Path) -> Vec<ObservedRequest> {
    let mut requests = Vec::new();
    for path in std::iter::once(path.to_owned()).chain(sub_agents(path)) {
        let records = records(&path, None, |line| line.contains("\"usage\"")).unwrap_or_default();
        requests.extend(records.iter().filter_map(request_of));
    }
    requests
}

/// Returns the transcripts of the sub-agents of a conversation.
fn sub_agents(path: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(path.with_extension("").join("subagents")) else { return Vec::new() };
    let files = entries.flatten().map(|entry| entry.path());
    let files = files.filter(|path| path.extension().is_some_and(|extension| extension == "jsonl"));
    files.take(SUB_AGENTS).collect()
}

fn request_of(record: &Value) -> Option<ObservedRequest> {
    let message = record.get("message")?;
    let (id, usage) = (text(message, "id")?, message.get("usage")?);
    let model = text(message, "model").unwrap_or("unknown");
    (model != SYNTHETIC).then(|| ObservedRequest {
        id: id.to_owned(),
        provider: Program::ClaudeCode.provider().to_owned(),
        model: model.to_owned(),
        usage: Usage::of(Some(usage)).amounts(),
    })
}

/// Returns the texts of an answer before its first call, if this is that call.
pub(super) fn texts_before(path: &Path, call: &str) -> Vec<String> {
    let records = records(path, Some(RECENT), |line| line.contains("\"assistant\"")).unwrap_or_default();
    let block = |record: &Value| record.pointer("/message/content/0").cloned().unwrap_or(Value::Null);
    let answer = |record: &Value| record.pointer("/message/id").and_then(Value::as_str).map(str::to_owned);
    let is_call = |block: &Value| text(block, "id") == Some(call);
    let Some(made) = records.iter().rev().find(|record| is_call(&block(record))) else { return Vec::new() };
    let Some(of_call) = answer(made) else { return Vec::new() };
    let blocks = records.iter().filter(|record| answer(record).as_ref() == Some(&of_call)).map(block);
    let blocks: Vec<Value> = blocks.take_while(|block| !is_call(block)).collect();
    if blocks.iter().any(|block| text(block, "type") == Some("tool_use")) {
        return Vec::new();
    }
    let texts = blocks.iter().filter(|block| text(block, "type") == Some("text"));
    texts.filter_map(|block| text(block, "text").map(str::to_owned)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::transcript;

    #[test]
    fn an_answer_of_several_blocks_is_one_request_and_those_of_sub_agents_count_too() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("conversation.jsonl");
        let record = |id: &str, model: &str, output: u64| {
            json!({"type": "assistant", "message": {"id": id, "model": model, "usage": {"input_tokens": 10,
                "cache_read_input_tokens": 5, "output_tokens": output}}})
        };
        let lines = [record("m1", "opus", 1), record("m1", "opus", 7), record("m2", SYNTHETIC, 3)];
        std::fs::write(&path, lines.map(|line| format!("{line}\n")).concat()).unwrap();
        let sub_agents = directory.path().join("conversation/subagents");
        std::fs::create_dir_all(&sub_agents).unwrap();
        std::fs::write(sub_agents.join("agent-1.jsonl"), record("m3", "haiku", 2).to_string()).unwrap();
        std::fs::write(sub_agents.join("note.txt"), record("m4", "haiku", 2).to_string()).unwrap();
        let requests = transcript::requests(Program::ClaudeCode, &path);
        let seen: Vec<_> =
            requests.iter().map(|request| (&*request.id, request.usage.output_tokens)).collect();
        assert_eq!(seen, [("m1", 7), ("m3", 2)]);
        assert_eq!(requests[0].usage.input_tokens, 15);
    }
}
