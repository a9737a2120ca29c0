//! Clients of an MCP server in another process.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;

use backstitch_core::journal::Effect;
use backstitch_mcp::{McpServer, ServerSpec};
use backstitch_runtime::{Agent, DriveOutcome, Runtime, SessionOptions, Tools};
use backstitch_store::MemoryStore;
use backstitch_testkit::tool::CallSpec;
use serde_json::{Value, json};

use super::place::{Place, threads};
use super::{Case, Trouble, loops, server};

const PYTHON: &str = include_str!("client.py");

/// A client that writes the protocol by hand.
struct HandClient {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl HandClient {
    fn connect(place: &Place) -> Self {
        let words = server::command(place);
        let mut child = Command::new(&words[0])
            .args(&words[1..])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let (input, output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let mut client = Self { child, input, output };
        let information = json!({
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "hand", "version": "1"},
        });
        client.send(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": information}));
        client.answer(0);
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        client
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.input, "{message}").unwrap();
    }

    fn answer(&mut self, id: u64) -> Value {
        loop {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).unwrap() > 0, "the server answers");
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["id"] == id && message.get("method").is_none() {
                return message;
            }
        }
    }

    fn leave(self) {
        drop(self.input);
        let mut child = self.child;
        assert!(child.wait().unwrap().success());
    }
}

/// A client that writes the protocol by hand.
pub(super) fn by_hand(place: &Place, case: &Case) {
    let mut client = HandClient::connect(place);
    let calls = case.calls();
    for (id, call) in (1..).zip(&calls) {
        let parameters = json!({"name": call.name, "arguments": call.arguments});
        client.send(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": parameters}));
        if id == calls.len() as u64 {
            match case.trouble {
                Trouble::Cancelled => {
                    place.wait_for_begin();
                    let cancelled = json!({"requestId": id});
                    client.send(
                        &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled}),
                    );
                    // A cancelled request has no answer.
                    break;
                }
                Trouble::Denied => place.deny(),
                Trouble::None | Trouble::Budget => {}
            }
        }
        client.answer(id);
    }
    client.leave();
}

/// An agent of its own, whose tools are those of the server.
pub(super) fn ours(place: &Place, case: &Case) {
    let threads = threads();
    let mcp = McpServer::new(ServerSpec::program("it", server::command(place)));
    let known: Vec<_> = Place::tools().iter().map(|tool| tool.name().to_string()).collect();
    let listed = threads.block_on(mcp.list()).unwrap();
    let offered = listed.tools.iter().filter(|tool| known.contains(&tool.name));
    let tools = Tools::new(offered.map(|tool| mcp.tool(tool, Some(Effect::Pure)).unwrap())).unwrap();
    assert_eq!(tools.iter().count(), known.len());
    let calls = case.calls().into_iter();
    let calls = calls.map(|call| CallSpec::new(&format!("it__{}", call.name), call.arguments)).collect();
    let agent = Agent::new("tests/client").policy(loops::scripted(calls)).tools(tools);
    let runtime = Runtime::new(Arc::new(MemoryStore::new()));
    let driver = threads.block_on(runtime.create(agent, SessionOptions::default())).unwrap();
    std::thread::scope(|scope| {
        let started = scope.spawn(|| threads.block_on(driver.start("Sew.")).unwrap());
        match case.trouble {
            Trouble::Cancelled => {
                place.wait_for_begin();
                threads.block_on(runtime.cancel(driver.session().id())).unwrap();
            }
            Trouble::Denied => place.deny(),
            Trouble::None | Trouble::Budget => {}
        }
        let ended = started.join().unwrap();
        let is_cancelled = matches!(ended, DriveOutcome::Cancelled { .. });
        assert_eq!(is_cancelled, case.trouble == Trouble::Cancelled, "{ended:?}");
    });
    threads.block_on(async { mcp.end() });
    follow(place);
}

/// The SDK for Python. Without it, nothing is left behind.
#[expect(clippy::print_stderr, reason = "a skipped comparison is reported")]
pub(super) fn python(place: &Place, case: &Case) {
    let packages = std::env::var_os("BACKSTITCH_MCP_PACKAGES").map(PathBuf::from);
    let program = packages.map(|packages| packages.join("venv/bin/python"));
    let Some(program) = program.filter(|program| program.exists()) else {
        eprintln!(
            "SKIPPED: BACKSTITCH_MCP_PACKAGES names no directory with Python's MCP; ./test installs it"
        );
        return;
    };
    let calls: Vec<Value> = case
        .calls()
        .into_iter()
        .map(|call| json!({"name": call.name, "arguments": call.arguments}))
        .collect();
    let begun = if case.trouble == Trouble::Cancelled { place.file(Case::BEGUN) } else { PathBuf::new() };
    let mut client = Command::new(program);
    client.args(["-c", PYTHON]).env("SERVER", json!(server::command(place)).to_string());
    client.env("CALLS", json!(calls).to_string()).env("BEGUN", begun);
    client.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let running = client.spawn().unwrap();
    if case.trouble == Trouble::Denied {
        place.deny();
    }
    let ran = running.wait_with_output().unwrap();
    let (output, errors) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success() && output.contains("made all calls"), "{output}\n{errors}");
    follow(place);
}

/// Starts the next server, since a client may have killed its own: it restores what was left.
fn follow(place: &Place) {
    for _ in 0..600 {
        let is_free = threads().block_on(async {
            let runtime = place.runtime();
            let held = runtime.status(Place::session()).await.unwrap();
            !matches!(held, backstitch_core::view::SessionStatus::Running)
        });
        if is_free {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    HandClient::connect(place).leave();
}
