//! A program that speaks the protocol of Codex' app-server. The test plays its part over two pipes.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::stage::{Stage, text_of, wait_until};

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

/// The command: connects standard input and output with the pipes.
const COMMAND: &str = r#"#!/bin/sh
if [ "$1" = --version ]; then echo "codex-cli @VERSION@"; exit; fi
cd @PIPES@ || exit 9
echo $$ > pid
for word in "$@"; do printf '%s\0' "$word"; done > arguments.new
mv arguments.new arguments
exec 3<&0
cat <&3 > to &
cat from
wait
"#;

/// A stage with the stand-in as `codex`.
pub(super) fn codex_stage(version: &str) -> Stage {
    let stage = Stage::new();
    let (programs, pipes) = (stage.path("programs"), stage.path("pipes"));
    for directory in [&programs, &pipes, &stage.path("home")] {
        fs::create_dir(directory).unwrap();
    }
    for name in ["to", "from"] {
        assert!(Command::new("mkfifo").arg(pipes.join(name)).status().unwrap().success());
    }
    let text = COMMAND.replace("@PIPES@", &text_of(&pipes)).replace("@VERSION@", version);
    fs::write(programs.join("codex"), text).unwrap();
    fs::set_permissions(programs.join("codex"), fs::Permissions::from_mode(0o755)).unwrap();
    stage.write("tailor.toml", CODEX_AGENT);
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let home = text_of(&stage.path("home"));
    stage.with_variable("PATH", &path).with_variable("HOME", &home).with_variable("CODEX_HOME", &home)
}

/// The part of the program.
pub(super) struct Codex<'a> {
    stage: &'a Stage,
    pub(super) arguments: Vec<String>,
    input: BufReader<File>,
    output: Option<File>,
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
        let mut codex = Self::accept(stage);
        let initialize = codex.read();
        assert_eq!(initialize["method"], "initialize", "{initialize}");
        codex.result(&initialize, json!({"userAgent": "backstitch/0.166.0", "later": [1]}));
        assert_eq!(codex.read()["method"], "initialized");
        let mut request = codex.read();
        if request["method"] == "thread/read" {
            match &read {
                Some(turns) => codex.result(&request, json!({"thread": {"turns": turns}})),
                None => codex.send(
                    &json!({"id": request["id"], "error": {"code": -32600, "message": "no rollout found"}}),
                ),
            }
            request = codex.read();
        }
        codex.opened = request.clone();
        codex.thread = match request["method"].as_str() {
            Some("thread/resume") => request["params"]["threadId"].as_str().unwrap().to_owned(),
            Some("thread/fork") => "forked".to_owned(),
            _ => "thread-1".to_owned(),
        };
        let thread = json!({"id": codex.thread, "path": text_of(&stage.path("rollout.jsonl")), "later": {}});
        codex.result(&request, json!({"thread": thread, "model": "seam-1"}));
        codex.begun = codex.read();
        assert_eq!(codex.begun["method"], "turn/start", "{}", codex.begun);
        codex.turn = format!("turn-{}", codex.begun["id"]);
        let begun = codex.begun.clone();
        codex.result(&begun, json!({"turn": {"id": codex.turn}}));
        codex.notify("turn/started", json!({"turn": {"id": codex.turn}}));
        codex
    }

    fn accept(stage: &'a Stage) -> Self {
        let pipes = stage.path("pipes");
        wait_until("the start of the program", || pipes.join("arguments").exists());
        let words = fs::read_to_string(pipes.join("arguments")).unwrap();
        fs::remove_file(pipes.join("arguments")).unwrap();
        let arguments = words.split_terminator('\0').map(str::to_owned).collect();
        let input = BufReader::new(File::open(pipes.join("to")).unwrap());
        let output = Some(File::options().write(true).open(pipes.join("from")).unwrap());
        let (opened, begun) = (Value::Null, Value::Null);
        let (thread, turn) = (String::new(), String::new());
        Self {
            stage,
            arguments,
            input,
            output,
            opened,
            begun,
            remarks: Vec::new(),
            stop: None,
            thread,
            turn,
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

    pub(super) fn read(&mut self) -> Value {
        self.try_read().expect("a line")
    }

    pub(super) fn try_read(&mut self) -> Option<Value> {
        let mut line = String::new();
        let read = self.input.read_line(&mut line).ok()?;
        (read > 0).then(|| serde_json::from_str(&line).unwrap())
    }

    pub(super) fn send(&mut self, line: &Value) {
        self.write(&format!("{line}\n"));
    }

    /// Writes anything.
    pub(super) fn write(&mut self, text: &str) {
        // The other side may be gone.
        let _ = self.output.as_mut().unwrap().write_all(text.as_bytes());
    }

    fn result(&mut self, request: &Value, result: Value) {
        self.send(&json!({"id": request["id"], "result": result}));
    }

    pub(super) fn notify(&mut self, method: &str, mut params: Value) {
        params["threadId"] = json!(self.thread);
        params["turnId"] = json!(self.turn);
        self.send(&json!({"method": method, "params": params, "emittedAtMs": 1}));
    }

    /// Requests something, and waits for the answer. Texts that come before it are kept.
    pub(super) fn ask(&mut self, method: &str, mut params: Value) -> Value {
        self.next += 1;
        let id = json!(format!("q{}", self.next));
        params["threadId"] = json!(self.thread);
        params["turnId"] = json!(self.turn);
        self.send(&json!({"id": id, "method": method, "params": params}));
        loop {
            let line = self.read();
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
        while self.try_read().is_some() {}
    }

    /// Waits for the request to stop, and ends the turn.
    pub(super) fn wait_for_interrupt(mut self) {
        loop {
            let line = self.stop.take().unwrap_or_else(|| self.read());
            if line["method"] == "turn/interrupt" {
                assert_eq!(line["params"], json!({"threadId": self.thread, "turnId": self.turn}));
                self.result(&line, json!({}));
                break;
            }
        }
        self.notify("turn/completed", json!({"turn": {"id": self.turn, "status": "interrupted"}}));
        while self.try_read().is_some() {}
    }
}
