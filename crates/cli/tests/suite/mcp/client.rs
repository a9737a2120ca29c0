//! A client that writes the protocol by hand, so that it shares no code with the server.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use serde_json::{Value, json};

use crate::command::Ran;
use crate::stage::{Stage, ended};

pub(super) use backstitch_testkit::mcp::{failed, text, worked};

/// Time limit of an answer. The machine may be busy.
const PATIENCE: Duration = Duration::from_secs(120);

/// The agent of the tests.
pub(super) const AGENT: &str = r#"
name = "tailor"
tools = ["read_file", "write_file", "shell"]

[[tool]]
name = "mend"
description = "Runs a script."
command = ["sh", "-c", "{script}"]
parameters = { type = "object", properties = { script = { type = "string" } }, required = ["script"] }
effect = "workspace"
"#;

/// Nothing arrived in time.
#[derive(Debug)]
pub(super) struct Timeout;

/// Whether the log of a server says that its SDK no longer waits for the handlers of a client that is gone.
pub(super) fn has_stopped_waiting(log: &str) -> bool {
    std::fs::read_to_string(log).is_ok_and(|log| log.contains("timed out draining in-flight responses"))
}

/// A server process, and the pipes to it.
pub(super) struct Client {
    child: Option<Child>,
    input: Option<ChildStdin>,
    lines: Receiver<Value>,
    next: u64,
    /// Messages that arrived while an answer was awaited.
    pub(super) others: Vec<Value>,
}

impl Client {
    /// Starts a server, without a handshake.
    pub(super) fn start(stage: &Stage, more: &[&str]) -> Self {
        Self::start_with(stage, AGENT, more)
    }

    /// Like [`start`](Self::start), with another agent.
    pub(super) fn start_with(stage: &Stage, agent: &str, more: &[&str]) -> Self {
        let agent = stage.write("tailor.toml", agent);
        let mut arguments = vec!["mcp", "serve", "--agent", &agent, "--sandbox", "off"];
        arguments.extend(more);
        let mut child = stage.command(&arguments).stdin(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                let line = serde_json::from_str(&line).unwrap_or_else(|_| json!({"garbage": line}));
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let input = child.stdin.take();
        Self { child: Some(child), input, lines, next: 1, others: Vec::new() }
    }

    /// Starts a server and makes the handshake of the newest revision that has one.
    pub(super) fn connected(stage: &Stage, more: &[&str]) -> Self {
        Self::connected_with(stage, more, &json!({}))
    }

    /// Like [`connected`](Self::connected), with capabilities of the client.
    pub(super) fn connected_with(stage: &Stage, more: &[&str], capabilities: &Value) -> Self {
        let mut client = Self::start(stage, more);
        assert!(client.shake_hands(capabilities), "the server answers");
        client
    }

    /// Makes the handshake, and waits for the tools. Returns whether the server lived to answer.
    pub(super) fn shake_hands(&mut self, capabilities: &Value) -> bool {
        let information = json!({
            "protocolVersion": "2025-11-25", "capabilities": capabilities,
            "clientInfo": {"name": "needle", "version": "1"},
        });
        let id = self.post("initialize", information);
        let Some(answer) = self.answer_of_mortal(id) else { return false };
        assert_eq!(answer["result"]["protocolVersion"], "2025-11-25", "{answer}");
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        // The handshake is answered before the session is ready.
        let id = self.post("tools/list", json!({}));
        self.answer_of_mortal(id).is_some()
    }

    pub(super) fn send(&mut self, message: &Value) {
        self.send_text(&message.to_string());
    }

    pub(super) fn send_text(&mut self, line: &str) {
        let input = self.input.as_mut().unwrap();
        // A server that was killed reads nothing.
        let _ = writeln!(input, "{line}").and_then(|()| input.flush());
    }

    /// Sends a request without waiting for its answer. Returns its id.
    pub(super) fn post(&mut self, method: &str, parameters: Value) -> u64 {
        let id = self.next;
        self.next += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": parameters}));
        id
    }

    pub(super) fn request(&mut self, method: &str, parameters: Value) -> Value {
        let id = self.post(method, parameters);
        self.answer(id)
    }

    /// Waits for the answer to a request.
    pub(super) fn answer(&mut self, id: u64) -> Value {
        self.answer_of_mortal(id).expect("the server answers")
    }

    /// Waits for the answer to a request, or for the end of the server.
    pub(super) fn answer_of_mortal(&mut self, id: u64) -> Option<Value> {
        self.answer_within(id, PATIENCE).expect("the server answers or ends")
    }

    /// Like [`answer_of_mortal`](Self::answer_of_mortal). Returns an error if neither happens in time.
    pub(super) fn answer_within(&mut self, id: u64, time: Duration) -> Result<Option<Value>, Timeout> {
        if let Some(at) = self.others.iter().position(|other| is_answer(other, id)) {
            return Ok(Some(self.others.remove(at)));
        }
        loop {
            match self.lines.recv_timeout(time) {
                Ok(line) if is_answer(&line, id) => return Ok(Some(line)),
                Ok(line) => self.others.push(line),
                Err(RecvTimeoutError::Disconnected) => return Ok(None),
                Err(RecvTimeoutError::Timeout) => return Err(Timeout),
            }
        }
    }

    /// Waits for the next message.
    pub(super) fn line(&mut self) -> Value {
        self.lines.recv_timeout(PATIENCE).expect("the server answers")
    }

    /// Sends a call, with the client's own id if there is one.
    pub(super) fn post_call(&mut self, id: Option<&str>, name: &str, arguments: Value) -> u64 {
        let mut parameters = json!({"name": name, "arguments": arguments});
        if let Some(id) = id {
            parameters["_meta"] = json!({"claudecode/toolUseId": id});
        }
        self.post("tools/call", parameters)
    }

    pub(super) fn call(&mut self, name: &str, arguments: Value) -> Value {
        let id = self.post_call(None, name, arguments);
        self.answer(id)
    }

    pub(super) fn call_as(&mut self, id: &str, name: &str, arguments: Value) -> Value {
        let id = self.post_call(Some(id), name, arguments);
        self.answer(id)
    }

    /// Kills the server.
    pub(super) fn kill(mut self) {
        let mut child = self.child.take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// Closes the input, and waits for the end of the server.
    pub(super) fn leave(mut self) -> Ran {
        drop(self.input.take());
        ended(self.child.take().unwrap())
    }

    pub(super) fn child(&self) -> &Child {
        self.child.as_ref().unwrap()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn is_answer(message: &Value, id: u64) -> bool {
    message["id"] == id && (message.get("result").is_some() || message.get("error").is_some())
}
