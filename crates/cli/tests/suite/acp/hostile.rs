//! Input that no editor should send. Each gets an error, and the process serves on.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use serde_json::{Value, json};

use crate::stage::{Stage, scripted, text_of};

/// A client that writes lines by hand.
struct Pipes {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Pipes {
    fn start(stage: &Stage) -> Self {
        let model = scripted(stage, &json!([{"text": "Done."}]));
        let mut child = stage
            .command(&["acp", "--model", &model])
            .stdin(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Self { child, input, output: BufReader::new(output) }
    }

    fn initialized(stage: &Stage) -> Self {
        let mut pipes = Self::start(stage);
        let answer = pipes.ask("initialize", json!({"protocolVersion": 1}));
        assert_eq!(answer["result"]["protocolVersion"], 1, "{answer}");
        pipes
    }

    fn send(&mut self, bytes: &[u8]) {
        self.input.write_all(bytes).and_then(|()| self.input.write_all(b"\n")).unwrap();
    }

    /// Returns the next answer. Notifications are skipped.
    fn answer(&mut self) -> Value {
        loop {
            let mut line = String::new();
            assert_ne!(self.output.read_line(&mut line).unwrap(), 0, "the process ended");
            let message: Value = serde_json::from_str(&line).unwrap();
            if message.get("method").is_none() {
                return message;
            }
        }
    }

    fn ask(&mut self, method: &str, parameters: Value) -> Value {
        self.send(
            json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": parameters}).to_string().as_bytes(),
        );
        self.answer()
    }

    fn new_session(&mut self, cwd: &str) -> Value {
        self.ask("session/new", json!({"cwd": cwd, "mcpServers": []}))
    }

    fn end(mut self) {
        drop(self.input);
        assert!(self.child.wait().unwrap().success());
    }
}

#[test]
fn lines_that_are_not_messages_are_answered_with_errors() {
    let stage = Stage::new();
    let mut pipes = Pipes::initialized(&stage);
    let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    for line in [&b"{\"jsonrpc\": nonsense"[..], b"\xff\xfe\xfd", b"17", b"[]", deep.as_bytes()] {
        pipes.send(line);
        assert!(pipes.answer()["error"]["code"].is_i64());
    }
    // One line of more than 64 MiB, which is not kept.
    let piece = vec![b'x'; 1024 * 1024];
    for _ in 0..66 {
        pipes.input.write_all(&piece).unwrap();
    }
    pipes.send(b"");
    assert_eq!(pipes.answer()["error"]["code"], -32700);
    let unknown = pipes.ask("session/fly", json!({}));
    assert_eq!(unknown["error"]["code"], -32601, "{unknown}");
    let wrong = pipes.ask("session/new", json!({"cwd": 7}));
    assert_eq!(wrong["error"]["code"], -32602, "{wrong}");
    assert!(pipes.new_session(&text_of(&stage.path("files")))["result"]["sessionId"].is_string());
    pipes.end();
}

#[test]
fn directories_that_cannot_be_a_workspace_are_refused() {
    let home = tempfile::tempdir().unwrap();
    let stage = Stage::new().with_variable("HOME", &text_of(home.path()));
    stage.write("file", "");
    let mut pipes = Pipes::initialized(&stage);
    for (cwd, reason) in [
        ("files".to_owned(), "absolute"),
        (text_of(&stage.path("missing")), "cannot be opened"),
        (text_of(&stage.path("file")), "not a directory"),
        (text_of(home.path()), "home directory"),
        ("/".to_owned(), ""),
    ] {
        let refused = pipes.new_session(&cwd);
        let message = refused["error"]["message"].as_str().unwrap_or_default();
        assert!(refused["error"].is_object() && message.contains(reason), "{cwd}: {refused}");
    }
    assert!(!stage.path("missing").exists(), "nothing is created");
    pipes.end();
}

#[test]
fn sessions_that_are_not_open_are_refused() {
    let stage = Stage::new();
    let mut pipes = Pipes::initialized(&stage);
    let files = text_of(&stage.path("files"));
    for id in ["", "../../etc", "01890a5d-ac96-774b-bcce-00000000002a"] {
        let prompt = json!({"sessionId": id, "prompt": [{"type": "text", "text": "x"}]});
        assert!(pipes.ask("session/prompt", prompt)["error"].is_object());
        let load = json!({"sessionId": id, "cwd": files, "mcpServers": []});
        assert!(pipes.ask("session/load", load)["error"].is_object());
        assert!(pipes.ask("_session/rewind_points", json!({"sessionId": id}))["error"].is_object());
    }
    pipes.end();
}

#[test]
fn a_project_that_is_not_trusted_is_refused_with_the_way_out() {
    let stage = Stage::new();
    std::fs::write(stage.path("files/backstitch.toml"), "instructions = false\n").unwrap();
    let mut pipes = Pipes::initialized(&stage);
    let refused = pipes.new_session(&text_of(&stage.path("files")));
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(message.contains("not trusted") && message.contains("backstitch trust"), "{message}");
    assert_eq!(refused["error"]["data"]["code"], "not_trusted");
    pipes.end();
}

#[test]
fn a_terminal_is_not_an_editor() {
    let stage = Stage::new();
    let refused = stage.run(&["acp", "--workspace", "."]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.errors.contains("--workspace"), "{}", refused.errors);
}
