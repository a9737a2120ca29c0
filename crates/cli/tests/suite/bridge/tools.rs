//! The tools of an agent, as the program of its engine calls them.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

/// A connection with the tools of an agent, through the relay.
pub(super) struct Tools {
    relay: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    next: u32,
}

impl Tools {
    /// Starts the relay that the settings name, and opens the connection.
    pub(super) fn connect(settings: &Value) -> Self {
        let relay = &settings["mcpServers"]["backstitch"];
        let words = relay["args"].as_array().unwrap().iter().map(|word| word.as_str().unwrap());
        let mut command = Command::new(relay["command"].as_str().unwrap());
        let mut relay = command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let input = relay.stdin.take();
        let output = BufReader::new(relay.stdout.take().unwrap());
        let mut tools = Self { relay, input, output, next: 0 };
        let client = json!({"name": "c", "version": "1"});
        tools.ask(
            "initialize",
            &json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}),
        );
        tools
    }

    /// Sends a request, and waits for its answer.
    pub(super) fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.next += 1;
        let request = json!({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params});
        writeln!(self.input.as_mut().unwrap(), "{request}").unwrap();
        loop {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).unwrap() > 0, "the relay ended");
            let line: Value = serde_json::from_str(&line).unwrap();
            if line["id"] == self.next {
                return line;
            }
        }
    }

    /// Calls the tool of the agent.
    pub(super) fn call(&mut self, id: &str, arguments: &Value) -> Value {
        let meta = json!({"claudecode/toolUseId": id});
        self.ask("tools/call", &json!({"name": "stitch", "arguments": arguments, "_meta": meta}))
    }

    /// Waits until the relay has ended, which it does with the session.
    pub(super) fn wait(mut self) {
        self.input = None;
        self.relay.wait().unwrap();
    }
}
