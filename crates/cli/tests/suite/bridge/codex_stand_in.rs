//! A program that speaks the protocol of Codex' app-server. The test plays its part over two pipes.

use std::path::Path;
use std::process::Child;

use serde_json::{Value, json};

use super::pipes::{Pipes, stage_with};
use crate::stage::{Stage, text_of};

/// The agent of the tests: the engine, and one tool of its own.
pub(super) const CODEX_AGENT: &str = r#"
name = "tailor"
engine = "codex"
system = "You mend clothes."

[[tool]]
name = "stitch"
description = "Runs a script."
command = ["sh", "-c", "{script}"]
parameters = { type = "object", properties = { script = { type = "string" } }, required = ["script"] }
effect = "workspace"
"#;

/// A stage with the stand-in as `codex`.
pub(super) fn codex_stage(version: &str) -> Stage {
    let stage = stage_with("codex", &format!("codex-cli {version}"), CODEX_AGENT);
    let home = text_of(&stage.path("home"));
    stage.with_variable("CODEX_HOME", &home)
}

/// The part of the program.
pub(super) struct Codex<'a> {
    stage: &'a Stage,
    pub(super) pipes: Pipes,
    /// What opened the conversation.
    pub(super) opened: Value,
    /// What began the turn.
    pub(super) begun: Value,
    /// Texts that came while it worked.
    pub(super) remarks: Vec<String>,
    /// The request to stop, if it came while another answer was awaited.
    stop: Option<Value>,
    thread: String,
    turn: String,
    next: u32,
    total: u64,
}

impl<'a> Codex<'a> {
    /// Waits until the program is started, opens its conversation and begins the turn. `read` is what it knows of the
    /// conversation that it continues; without it, it knows none.
    pub(super) fn begin(stage: &'a Stage, read: Option<Value>) -> Self {
        Self::over(stage, Pipes::accept(stage)).open(read).expect("a line")
    }

    /// Like [`begin`](Self::begin), of a new conversation. Returns `None` if the command is stopped before.
    pub(super) fn try_begin(stage: &'a Stage, child: &mut Child) -> Option<Self> {
        Self::over(stage, Pipes::try_accept(stage, child)?).open(None)
    }

    /// Opens the conversation and begins the turn, unless the input ends.
    fn open(mut self, read: Option<Value>) -> Option<Self> {
        let (stage, codex) = (self.stage, &mut self);
        let initialize = codex.pipes.try_read()?;
        assert_eq!(initialize["method"], "initialize", "{initialize}");
        codex.result(&initialize, json!({"userAgent": "backstitch/0.166.0", "later": [1]}));
        assert_eq!(codex.pipes.try_read()?["method"], "initialized");
        let mut request = codex.pipes.try_read()?;
        if request["method"] == "thread/read" {
            match &read {
                Some(turns) => codex.result(&request, json!({"thread": {"turns": turns}})),
                None => codex.pipes.send(
                    &json!({"id": request["id"], "error": {"code": -32600, "message": "no rollout found"}}),
                ),
            }
            request = codex.pipes.try_read()?;
        }
        codex.opened = request.clone();
        codex.thread = match request["method"].as_str() {
            Some("thread/resume") => request["params"]["threadId"].as_str().unwrap().to_owned(),
            Some("thread/fork") => "forked".to_owned(),
            _ => "thread-1".to_owned(),
        };
        let thread = json!({"id": codex.thread, "path": text_of(&stage.path("rollout.jsonl")), "later": {}});
        codex.result(&request, json!({"thread": thread, "model": "seam-1"}));
        codex.begun = codex.pipes.try_read()?;
        assert_eq!(codex.begun["method"], "turn/start", "{}", codex.begun);
        codex.turn = format!("turn-{}", codex.begun["id"]);
        let begun = codex.begun.clone();
        codex.result(&begun, json!({"turn": {"id": codex.turn}}));
        codex.notify("turn/started", json!({"turn": {"id": codex.turn}}));
        Some(self)
    }

    fn over(stage: &'a Stage, pipes: Pipes) -> Self {
        Self {
            stage,
            pipes,
            opened: Value::Null,
            begun: Value::Null,
            remarks: Vec::new(),
            stop: None,
            thread: String::new(),
            turn: String::new(),
            next: 0,
            total: 0,
        }
    }

    pub(super) fn prompt(&self) -> &str {
        self.begun["params"]["input"][0]["text"].as_str().unwrap()
    }

    pub(super) fn prompt_id(&self) -> &Value {
        &self.begun["params"]["clientUserMessageId"]
    }

    fn result(&mut self, request: &Value, result: Value) {
        self.pipes.send(&json!({"id": request["id"], "result": result}));
    }

    pub(super) fn notify(&mut self, method: &str, mut params: Value) {
        params["threadId"] = json!(self.thread);
        params["turnId"] = json!(self.turn);
        self.pipes.send(&json!({"method": method, "params": params, "emittedAtMs": 1}));
    }

    /// Requests something, and waits for the answer. Texts that come before it are kept.
    pub(super) fn ask(&mut self, method: &str, mut params: Value) -> Value {
        self.next += 1;
        let id = json!(format!("q{}", self.next));
        params["threadId"] = json!(self.thread);
        params["turnId"] = json!(self.turn);
        self.pipes.send(&json!({"id": id, "method": method, "params": params}));
        loop {
            let line = self.pipes.read();
            if line["method"] == "turn/steer" {
                assert_eq!(line["params"]["expectedTurnId"], json!(self.turn));
                self.remarks.push(line["params"]["input"][0]["text"].as_str().unwrap().to_owned());
                self.result(&line, json!({}));
            } else if line["method"] == "turn/interrupt" {
                self.stop = Some(line);
            } else if line["id"] == id {
                return line;
            }
        }
    }

    fn item(&self, id: &str, command: &str) -> Value {
        json!({"type": "commandExecution", "id": id, "command": format!("/bin/bash -lc '{command}'"), "status": "inProgress"})
    }

    /// Whether a request to stop came while another answer was awaited.
    pub(super) fn is_stopped(&self) -> bool {
        self.stop.is_some()
    }

    /// Begins a command, and asks whether it may run.
    pub(super) fn begins_call(&mut self, id: &str, command: &str) -> bool {
        let item = self.item(id, command);
        self.notify("item/started", json!({"item": item}));
        let answer =
            self.ask("item/commandExecution/requestApproval", json!({"itemId": id, "command": command}));
        answer["result"]["decision"] == "accept"
    }

    /// Makes a call: `work` does it, if it is allowed. Returns whether it was.
    pub(super) fn calls(&mut self, id: &str, command: &str, code: i32, work: impl FnOnce(&Path)) -> bool {
        let is_allowed = self.begins_call(id, command);
        let mut item = self.item(id, command);
        if is_allowed {
            work(&self.stage.path("files"));
            item["exitCode"] = json!(code);
            item["status"] = json!(if code == 0 { "completed" } else { "failed" });
            item["aggregatedOutput"] = json!("output\n");
        } else {
            item["status"] = json!("declined");
        }
        self.notify("item/completed", json!({"item": item}));
        self.used();
        is_allowed
    }

    fn used(&mut self) {
        self.total += 59;
        let last = json!({"totalTokens": 59, "inputTokens": 50, "cachedInputTokens": 5, "outputTokens": 9, "reasoningOutputTokens": 2});
        let usage = json!({"total": {"totalTokens": self.total}, "last": last});
        self.notify("thread/tokenUsage/updated", json!({"tokenUsage": usage}));
        // Nothing is counted twice.
        self.notify("thread/tokenUsage/updated", json!({"tokenUsage": usage}));
    }

    /// Answers, and ends the program once its input ends.
    pub(super) fn ends(mut self, text: &str) {
        self.notify("item/agentMessage/delta", json!({"itemId": "m", "delta": text}));
        self.notify("item/completed", json!({"item": {"type": "agentMessage", "id": "m", "text": text}}));
        self.used();
        self.notify("turn/completed", json!({"turn": {"id": self.turn, "status": "completed"}}));
        self.pipes.read_rest();
    }

    /// Waits for the request to stop, and ends the turn.
    pub(super) fn wait_for_interrupt(mut self) {
        loop {
            let line = self.stop.take().unwrap_or_else(|| self.pipes.read());
            if line["method"] == "turn/interrupt" {
                assert_eq!(line["params"], json!({"threadId": self.thread, "turnId": self.turn}));
                self.result(&line, json!({}));
                break;
            }
        }
        self.notify("turn/completed", json!({"turn": {"id": self.turn, "status": "interrupted"}}));
        self.pipes.read_rest();
    }
}
