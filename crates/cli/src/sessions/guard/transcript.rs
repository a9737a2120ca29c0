//! Transcripts of programs, which are read and never written.

use std::path::{Path, PathBuf};

use backstitch::budget::Amounts;
use backstitch::{ObservedCall, ObservedRequest, ObservedResult};
use backstitch_bridge::transcript::{record_id, record_of_result, records};
use serde_json::Value;

use super::program::Program;

/// The most bytes that are read of the end of a transcript.
const END: u64 = 4 * 1024 * 1024;

/// The most bytes of the end of a transcript that are read for what came just before.
const RECENT: u64 = 512 * 1024;

/// The most transcripts of sub-agents.
const SUB_AGENTS: usize = 1_000;

/// What Codex says to its model about a command that continues in the background.
const STILL_RUNS: &str = "Process running with session ID";

/// How the outputs begin that Codex gives its model for calls that it did not run, or could not.
const FAILED: [&str; 4] =
    ["exec_command failed", "patch rejected", "apply_patch verification failed", "aborted"];

/// Records of a transcript.
pub(super) struct Transcript {
    program: Program,
    records: Vec<Value>,
}

impl Transcript {
    /// Reads the end of a transcript. Returns `None` if it cannot be read.
    pub(super) fn read_end(program: Program, path: &Path) -> Option<Self> {
        Some(Self { program, records: records(path, Some(END), |_| true)? })
    }

    /// Reads a whole transcript. Returns `None` if it cannot be read.
    pub(super) fn read(program: Program, path: &Path) -> Option<Self> {
        Some(Self { program, records: records(path, None, |_| true)? })
    }

    /// Returns the results of calls, which have only ids and no arguments.
    pub(super) fn results(&self) -> Vec<(ObservedCall, ObservedResult)> {
        let mut results: Vec<_> =
            self.records.iter().flat_map(|record| results_of(self.program, record)).collect();
        if self.program == Program::Codex {
            for (call, result) in &mut results {
                let failure = self.records.iter().rev().find_map(|record| failure_of_item(record, &call.id));
                if let Some(failure) = failure {
                    result.outcome = Err(failure);
                }
            }
        }
        results
    }

    /// Returns the requests of a transcript and of those of its sub-agents.
    pub(super) fn all_requests(program: Program, path: &Path) -> Vec<ObservedRequest> {
        let mut requests = Vec::new();
        for path in std::iter::once(path.to_owned()).chain(sub_agents(program, path)) {
            let markers: &[&str] = match program {
                Program::ClaudeCode => &["\"usage\""],
                // The model is named where a turn begins.
                Program::Codex => &["\"token_usage_record\"", "\"turn_context\""],
            };
            let is_wanted = |line: &str| markers.iter().any(|marker| line.contains(marker));
            let records = records(&path, None, is_wanted).unwrap_or_default();
            let mut model = String::new();
            for record in &records {
                requests.extend(request_of(program, record, &mut model));
            }
        }
        // The blocks of one answer repeat its usage. The last is complete.
        let mut last: Vec<ObservedRequest> = Vec::new();
        for request in requests {
            match last.iter_mut().rev().find(|other| other.id == request.id) {
                Some(known) => *known = request,
                None => last.push(request),
            }
        }
        last
    }

    /// Returns what the program has said in the answer that makes a call, if it is the first call of that answer. At the report
    /// of a call, the transcript has all of that already.
    pub(super) fn said_before(program: Program, path: &Path, call: &str) -> Vec<String> {
        let markers: &[&str] = match program {
            Program::ClaudeCode => &["\"assistant\""],
            Program::Codex => &["\"response_item\""],
        };
        let is_wanted = |line: &str| markers.iter().any(|marker| line.contains(marker));
        let records = records(path, Some(RECENT), is_wanted).unwrap_or_default();
        match program {
            Program::ClaudeCode => said_by_claude(&records, call),
            Program::Codex => said_by_codex(&records, call),
        }
    }

    /// Returns the id of the record with the result of a call, after which a conversation can be continued.
    pub(super) fn record_of_result(&self, call: &str) -> Option<String> {
        record_of_result(&self.records, call)
    }

    /// Returns the id of the record of a prompt.
    pub(super) fn record_of_prompt(&self, prompt: &str) -> Option<String> {
        let is_it = |record: &&Value| {
            record.get("type").and_then(Value::as_str) == Some("user")
                && record.get("promptId").and_then(Value::as_str) == Some(prompt)
                && record.pointer("/message/content/0/tool_use_id").is_none()
        };
        record_id(self.records.iter().find(is_it)?)
    }

    /// Returns the id of the last record of the answer to a prompt: the last one before the next prompt.
    pub(super) fn record_of_answer(&self, prompt: &str) -> Option<String> {
        let text = |record: &Value, name: &str| record.get(name).and_then(Value::as_str).map(str::to_owned);
        let start =
            self.records.iter().position(|record| text(record, "promptId").as_deref() == Some(prompt))?;
        let is_next = |record: &&Value| {
            text(record, "promptId").is_some_and(|id| id != prompt)
                && text(record, "type").as_deref() == Some("user")
        };
        let after = self.records.iter().skip(start).take_while(|record| !is_next(record));
        let answers = after.filter(|record| {
            text(record, "type").as_deref() == Some("assistant")
                && record.get("isSidechain") != Some(&Value::Bool(true))
        });
        record_id(answers.last()?)
    }
}

/// Each block of an answer is a record, and they have the id of the answer in common.
fn said_by_claude(records: &[Value], call: &str) -> Vec<String> {
    let text = |value: &Value, path: &str| value.pointer(path).and_then(Value::as_str).map(str::to_owned);
    let block = |record: &Value| record.pointer("/message/content/0").cloned().unwrap_or(Value::Null);
    let is_it = |record: &&Value| text(record, "/message/content/0/id").as_deref() == Some(call);
    let Some(made) = records.iter().rev().find(is_it) else { return Vec::new() };
    let Some(answer) = text(made, "/message/id") else { return Vec::new() };
    let blocks =
        records.iter().filter(|record| text(record, "/message/id").as_ref() == Some(&answer)).map(block);
    let kind = |block: &Value| text(block, "/type").unwrap_or_default();
    let blocks: Vec<Value> = blocks.take_while(|block| text(block, "/id").as_deref() != Some(call)).collect();
    if blocks.iter().any(|block| kind(block) == "tool_use") {
        return Vec::new();
    }
    blocks.iter().filter(|block| kind(block) == "text").filter_map(|block| text(block, "/text")).collect()
}

/// The messages of an answer come before its calls. Prompts, results and earlier calls end what belongs to it.
fn said_by_codex(records: &[Value], call: &str) -> Vec<String> {
    let text = |value: &Value, path: &str| value.pointer(path).and_then(Value::as_str).map(str::to_owned);
    let is_it = |record: &Value| text(record, "/payload/call_id").as_deref() == Some(call);
    let Some(made) = records.iter().rposition(is_it) else { return Vec::new() };
    let mut said = Vec::new();
    for record in records[..made].iter().rev() {
        let kind = text(record, "/payload/type").unwrap_or_default();
        let role = text(record, "/payload/role").unwrap_or_default();
        match (kind.as_str(), role.as_str()) {
            ("message", "assistant") => said.extend(text(record, "/payload/content/0/text")),
            ("reasoning", _) => {}
            (kind, _) if kind.ends_with("_call") => return Vec::new(),
            _ => break,
        }
    }
    said.reverse();
    said
}

/// Returns how a command of Codex ended, which its hooks do not report. `None` if the transcript does not say it.
pub(super) fn failure_of_command(path: &Path, call: &str) -> Option<String> {
    let records = records(path, Some(END), |line| line.contains("item_completed") && line.contains(call))?;
    records.iter().rev().find_map(|record| failure_of_item(record, call))
}

/// Returns why an item of Codex failed, if it is the one of the call.
fn failure_of_item(record: &Value, call: &str) -> Option<String> {
    let item = record.pointer("/payload/item")?;
    if item.get("id")?.as_str()? != call {
        return None;
    }
    let code = item.get("exit_code").and_then(Value::as_i64);
    let status = item.get("status").and_then(Value::as_str).unwrap_or_default();
    let reason = match code {
        Some(0) => return None,
        Some(code) => format!("Exit code {code}"),
        None if status == "failed" || status == "declined" => format!("it {status}"),
        None => return None,
    };
    let texts = ["aggregated_output", "stderr", "stdout"];
    let output = texts.iter().filter_map(|name| item.get(*name)?.as_str()).find(|text| !text.is_empty());
    Some(output.map_or_else(|| reason.clone(), |output| format!("{reason}\n{output}")))
}

/// Returns the transcripts of the sub-agents of a conversation.
fn sub_agents(program: Program, path: &Path) -> Vec<PathBuf> {
    if program == Program::Codex {
        return Vec::new();
    }
    let Ok(entries) = std::fs::read_dir(path.with_extension("").join("subagents")) else { return Vec::new() };
    let files = entries.flatten().map(|entry| entry.path());
    files
        .filter(|path| path.extension().is_some_and(|extension| extension == "jsonl"))
        .take(SUB_AGENTS)
        .collect()
}

fn results_of(program: Program, record: &Value) -> Vec<(ObservedCall, ObservedResult)> {
    let result = |id: &str, outcome| {
        (ObservedCall::new(id, "", Value::Null), ObservedResult { outcome, elapsed_micros: None })
    };
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    match program {
        Program::ClaudeCode => {
            let blocks = record.pointer("/message/content").and_then(Value::as_array);
            let of_block = |block: &Value| {
                let id = block.get("tool_use_id")?.as_str()?;
                let content = block.get("content").cloned().unwrap_or(Value::Null);
                let is_error = block.get("is_error").and_then(Value::as_bool).unwrap_or(false);
                Some(result(id, if is_error { Err(text(&content)) } else { Ok(content) }))
            };
            blocks.into_iter().flatten().filter_map(of_block).collect()
        }
        Program::Codex => {
            let Some(payload) = record.get("payload") else { return Vec::new() };
            let kind = payload.get("type").and_then(Value::as_str).unwrap_or_default();
            let id = payload.get("call_id").and_then(Value::as_str);
            let output = payload.get("output").cloned().unwrap_or(Value::Null);
            // A command that continues in the background has not ended.
            let runs = text(&output).contains(STILL_RUNS);
            match id.filter(|_| kind.ends_with("_call_output") && !runs) {
                Some(id) if FAILED.iter().any(|beginning| text(&output).starts_with(beginning)) => {
                    vec![result(id, Err(text(&output)))]
                }
                Some(id) => vec![result(id, Ok(output))],
                None => Vec::new(),
            }
        }
    }
}

fn request_of(program: Program, record: &Value, model: &mut String) -> Option<ObservedRequest> {
    let number = |usage: &Value, name: &str| usage.get(name).and_then(Value::as_u64).unwrap_or(0);
    let provider = program.provider().to_owned();
    match program {
        Program::ClaudeCode => {
            let message = record.get("message")?;
            let (id, usage) = (message.get("id")?.as_str()?, message.get("usage")?);
            let (read, written) =
                (number(usage, "cache_read_input_tokens"), number(usage, "cache_creation_input_tokens"));
            let usage = Amounts {
                input_tokens: number(usage, "input_tokens").saturating_add(read).saturating_add(written),
                cache_read_tokens: read,
                cache_write_tokens: written,
                output_tokens: number(usage, "output_tokens"),
                ..Amounts::ZERO
            };
            let model = message.get("model").and_then(Value::as_str).unwrap_or("unknown").to_owned();
            // Messages that the program makes up itself cost nothing.
            (model != "<synthetic>").then(|| ObservedRequest { id: id.to_owned(), provider, model, usage })
        }
        Program::Codex => {
            let payload = record.get("payload")?;
            if let Some(named) = payload.get("model").and_then(Value::as_str) {
                named.clone_into(model);
            }
            let usage = payload.get("usage")?;
            let id = payload.get("response_id")?.as_str()?.to_owned();
            let usage = Amounts {
                input_tokens: number(usage, "input_tokens"),
                cache_read_tokens: number(usage, "cached_input_tokens"),
                cache_write_tokens: number(usage, "cache_write_input_tokens"),
                output_tokens: number(usage, "output_tokens"),
                reasoning_tokens: number(usage, "reasoning_output_tokens"),
                ..Amounts::ZERO
            };
            let model = if model.is_empty() { "unknown".to_owned() } else { model.clone() };
            Some(ObservedRequest { id, provider, model, usage })
        }
    }
}
