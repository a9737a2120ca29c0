//! A program that speaks the protocol of Claude Code. The test plays its part over two pipes.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use serde_json::{Value, json};

use super::pipes::{Pipes, stage_with};
use super::tools::Tools;
use crate::stage::{Stage, text_of};

/// The agent of the tests: the engine, and one tool of its own.
pub(super) const AGENT: &str = r#"
name = "tailor"
engine = "claude-code"
system = "You mend clothes."

[[tool]]
name = "stitch"
description = "Runs a script."
command = ["sh", "-c", "{script}"]
parameters = { type = "object", properties = { script = { type = "string" } }, required = ["script"] }
effect = "workspace"
"#;

/// A stage with the stand-in as `claude`.
pub(super) fn stage() -> Stage {
    stage_of("2.1.197")
}

pub(super) fn stage_of(version: &str) -> Stage {
    stage_with("claude", &format!("{version} (Claude Code)"), AGENT)
}

/// Starts the command with the agent of the tests.
pub(super) fn run(stage: &Stage, more: &[&str]) -> Child {
    let agent = text_of(&stage.path("tailor.toml"));
    let mut arguments = vec!["run", "Mend it", "--agent", &agent];
    arguments.extend(more);
    stage.command(&arguments).spawn().unwrap()
}

/// The part of the program.
pub(super) struct Claude<'a> {
    stage: &'a Stage,
    pub(super) pipes: Pipes,
    pub(super) session: String,
    pub(super) prompt: Value,
    /// Whether a request to stop has been read.
    pub(super) is_interrupted: bool,
    next: u32,
    answers: u32,
}

impl<'a> Claude<'a> {
    /// Waits until the program is started, and opens its conversation.
    pub(super) fn begin(stage: &'a Stage) -> Self {
        Self::accept(stage).open().expect("a line")
    }

    /// Like [`begin`](Self::begin). Returns `None` if the command is stopped before.
    pub(super) fn try_begin(stage: &'a Stage, child: &mut Child) -> Option<Self> {
        Self::over(stage, Pipes::try_accept(stage, child)?).open().filter(|claude| !claude.is_interrupted)
    }

    /// Opens the conversation, unless the input ends.
    fn open(mut self) -> Option<Self> {
        let claude = &mut self;
        let initialize = claude.pipes.try_read()?;
        assert_eq!(initialize["request"]["subtype"], "initialize", "{initialize}");
        assert!(initialize["request"]["hooks"]["PreToolUse"].is_array(), "{initialize}");
        claude.prompt = claude.pipes.try_read()?;
        assert_eq!(claude.prompt["type"], "user");
        claude.pipes.send(&json!({"type": "control_response", "response":
            {"subtype": "success", "request_id": initialize["request_id"], "response": {}}}));
        let option = |name: &str| claude.option(name);
        let resumed = option("--resume").filter(|_| option("--fork-session").is_none());
        claude.session = option("--session-id").or(resumed).unwrap_or_else(|| "forked".to_owned());
        let prompt = claude.prompt.clone();
        claude.record(json!({"type": "user", "uuid": prompt["uuid"], "message": prompt["message"]}));
        claude.hook("UserPromptSubmit", json!({"prompt": prompt["message"]["content"]}));
        claude.pipes.send(
            &json!({"type": "system", "subtype": "init", "session_id": claude.session, "model": "seam-1",
            "claude_code_version": "2.1.197", "later": {"unknown": true}}),
        );
        Some(self)
    }

    /// Waits until the program is started.
    pub(super) fn accept(stage: &'a Stage) -> Self {
        Self::over(stage, Pipes::accept(stage))
    }

    fn over(stage: &'a Stage, pipes: Pipes) -> Self {
        let (session, prompt) = (String::new(), Value::Null);
        Self { stage, pipes, session, prompt, is_interrupted: false, next: 0, answers: 0 }
    }

    /// Returns the value of an option; an empty text for one at the end.
    pub(super) fn option(&self, name: &str) -> Option<String> {
        let at = self.pipes.arguments.iter().position(|word| word == name)?;
        Some(self.pipes.arguments.get(at + 1).cloned().unwrap_or_default())
    }

    pub(super) fn transcript(&self) -> PathBuf {
        self.stage.path(&format!("{}.jsonl", self.session))
    }

    fn record(&self, mut record: Value) {
        let text = fs::read_to_string(self.transcript()).unwrap_or_default();
        let last: Option<Value> = text.lines().last().map(|line| serde_json::from_str(line).unwrap());
        record["parentUuid"] = last.map_or(Value::Null, |last| last["uuid"].clone());
        let mut file = File::options().create(true).append(true).open(self.transcript()).unwrap();
        writeln!(file, "{record}").unwrap();
    }

    fn request(&mut self, body: Value) -> String {
        self.next += 1;
        let id = format!("q{}", self.next);
        self.pipes.send(&json!({"type": "control_request", "request_id": id, "request": body}));
        id
    }

    /// Sends a request, and waits for its response. After a request to stop there may be none.
    fn asked(&mut self, body: Value) -> Value {
        let id = self.request(body);
        loop {
            let Some(line) = self.pipes.try_read() else {
                assert!(self.is_interrupted, "the input ended");
                return Value::Null;
            };
            self.is_interrupted |= line["request"]["subtype"] == "interrupt";
            if line["response"]["request_id"] == id.as_str() {
                return line["response"]["response"].clone();
            }
        }
    }

    fn event(&self, event: &str, mut more: Value) -> Value {
        more["hook_event_name"] = json!(event);
        more["transcript_path"] = json!(text_of(&self.transcript()));
        more["session_id"] = json!(self.session);
        json!({"subtype": "hook_callback", "callback_id": event, "input": more})
    }

    /// Reports a hook event, and waits for the response.
    pub(super) fn hook(&mut self, event: &str, more: Value) -> Value {
        let body = self.event(event, more);
        self.asked(body)
    }

    /// Reports a hook event without waiting.
    pub(super) fn hook_begun(&mut self, event: &str, more: Value) {
        let body = self.event(event, more);
        self.request(body);
    }

    /// Answers with blocks, as one message of the model.
    pub(super) fn answers(&mut self, blocks: &[Value]) {
        self.answers += 1;
        let id = format!("msg_{}_{}", self.session, self.answers);
        let usage = json!({"input_tokens": 100, "cache_read_input_tokens": 7, "output_tokens": 1});
        let stream =
            |event: Value| json!({"type": "stream_event", "event": event, "parent_tool_use_id": null});
        self.pipes.send(&stream(
            json!({"type": "message_start", "message": {"id": id, "model": "seam-1", "usage": usage}}),
        ));
        for (index, block) in blocks.iter().enumerate() {
            if let Some(text) = block["text"].as_str() {
                self.pipes.send(&stream(
                    json!({"type": "content_block_delta", "delta": {"type": "text_delta", "text": text}}),
                ));
            }
            let message = json!({"id": id, "model": "seam-1", "usage": usage, "content": [block]});
            self.pipes.send(&json!({"type": "assistant", "message": message, "parent_tool_use_id": null}));
            self.record(json!({"type": "assistant", "uuid": format!("a-{}-{index}", self.answers), "message": message}));
        }
        self.pipes.send(&stream(json!({"type": "message_delta", "usage": {"output_tokens": 25}})));
        self.pipes.send(&stream(json!({"type": "message_stop"})));
    }

    pub(super) fn says(&mut self, text: &str) {
        self.answers(&[json!({"type": "text", "text": text})]);
    }

    /// Makes a call of its own tools: `work` does it, if it is allowed. Returns the output of the hook before it.
    pub(super) fn calls(&mut self, id: &str, name: &str, input: &Value, work: impl FnOnce(&Path)) -> Value {
        self.answers(&[json!({"type": "tool_use", "id": id, "name": name, "input": input})]);
        let call = json!({"tool_name": name, "tool_input": input, "tool_use_id": id});
        let before = self.hook("PreToolUse", call.clone());
        if is_denied(&before) {
            self.result_of(id, &before["hookSpecificOutput"]["permissionDecisionReason"].clone(), true);
            return before;
        }
        let may = self
            .asked(json!({"subtype": "can_use_tool", "tool_name": name, "input": input, "tool_use_id": id}));
        if self.is_interrupted {
            return before;
        }
        assert_eq!(may["behavior"], "allow", "{may}");
        work(&self.stage.path("files"));
        let mut after = call;
        after["tool_response"] = json!({"stdout": "done"});
        after["duration_ms"] = json!(12);
        self.hook("PostToolUse", after);
        self.result_of(id, &json!("done"), false);
        before
    }

    /// Connects with the tools of the agent.
    pub(super) fn tools(&self) -> Tools {
        Tools::connect(&serde_json::from_str(&self.option("--mcp-config").unwrap()).unwrap())
    }

    /// Makes a call of the agent's own tool. Returns the answer of its server.
    pub(super) fn stitches(&mut self, tools: &mut Tools, id: &str, script: &str) -> Value {
        let (name, input) = ("mcp__backstitch__stitch", json!({ "script": script }));
        self.answers(&[json!({"type": "tool_use", "id": id, "name": name, "input": input})]);
        let call = json!({"tool_name": name, "tool_input": input, "tool_use_id": id});
        self.hook("PreToolUse", call.clone());
        let answer = tools.call(id, &input);
        let mut after = call;
        after["tool_response"] = answer["result"]["content"].clone();
        self.hook("PostToolUse", after);
        self.result_of(id, &answer["result"]["content"], false);
        answer
    }

    /// Begins a call that does not end. Returns whether it runs.
    pub(super) fn begins_call(&mut self, id: &str, name: &str, input: &Value) -> bool {
        self.answers(&[json!({"type": "tool_use", "id": id, "name": name, "input": input})]);
        let before =
            self.hook("PreToolUse", json!({"tool_name": name, "tool_input": input, "tool_use_id": id}));
        !self.is_interrupted && !is_denied(&before)
    }

    pub(super) fn result_of(&mut self, id: &str, content: &Value, is_error: bool) {
        let block =
            json!({"type": "tool_result", "tool_use_id": id, "content": content, "is_error": is_error});
        let message = json!({"role": "user", "content": [block]});
        self.pipes.send(&json!({"type": "user", "message": message, "parent_tool_use_id": null}));
        self.record(
            json!({"type": "user", "uuid": format!("r-{}", id.replace('_', "-")), "message": message}),
        );
    }

    /// Ends the turn with the result line, and the program once its input ends.
    pub(super) fn ends(mut self, text: &str) {
        self.hook("Stop", json!({"background_tasks": []}));
        self.pipes.send(&json!({"type": "result", "subtype": "success", "is_error": false, "result": text,
            "total_cost_usd": 0.25, "terminal_reason": "completed"}));
        self.pipes.read_rest();
    }

    /// Ends the program at once, without a word.
    pub(super) fn dies(&mut self) {
        let id = fs::read_to_string(self.stage.path("pipes/pid")).unwrap();
        Command::new("kill").args(["-9", id.trim()]).status().unwrap();
        self.pipes.close();
    }
}

fn is_denied(before: &Value) -> bool {
    before["hookSpecificOutput"]["permissionDecision"] == "deny"
}
