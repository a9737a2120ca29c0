//! The client is killed in the middle of a call: the call ends as if the client had waited.

use std::process::{Child, ChildStderr, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use super::client::{AGENT, Client, worked};
use crate::stage::{Stage, wait_until};

/// A client that is one process: it starts a server, sends what `requests` has, and then only holds the pipes. It opens them before it
/// starts the server, which therefore waits for nobody to open its sides, whenever the client is killed.
const SCRIPT: &str = r#"
mkfifo up down
exec 3<> up 4<> down
"$@" < up > down 3>&- 4>&- &
cat requests >&3
exec sleep 600
"#;

/// Starts such a client, which makes one call.
fn start(stage: &Stage, serve: &[&str], name: &str, arguments: &Value) -> Child {
    let information = json!({
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "mortal", "version": "1"},
    });
    let call = json!({"name": name, "arguments": arguments, "_meta": {"claudecode/toolUseId": "toolu_it"}});
    let requests = [
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": information}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call}),
    ];
    let requests: String = requests.iter().map(|request| format!("{request}\n")).collect();
    let place = stage.path("client");
    let _ = std::fs::remove_dir_all(&place);
    std::fs::create_dir(&place).unwrap();
    std::fs::write(place.join("requests"), requests).unwrap();
    let agent = stage.write("tailor.toml", AGENT);
    let directory = stage.path("files");
    let mut words = vec!["mcp", "serve", "--agent", &agent, "--workspace", directory.to_str().unwrap()];
    words.extend(["--sandbox", "off"]);
    words.extend(serve);
    let server = stage.command(&words);
    let mut client = std::process::Command::new("sh");
    client.args(["-c", SCRIPT, "sh"]).arg(server.get_program()).args(server.get_args());
    for (name, value) in server.get_envs() {
        match value {
            Some(value) => client.env(name, value),
            None => client.env_remove(name),
        };
    }
    client.current_dir(place).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    client.spawn().unwrap()
}

/// The errors of a client that was killed, and of everything that it has started.
struct Orphans(ChildStderr);

impl Orphans {
    /// Waits until none of them is left: then nobody holds the pipe.
    fn await_end(mut self) {
        std::io::copy(&mut self.0, &mut std::io::sink()).unwrap();
    }
}

fn kill(mut client: Child) -> Orphans {
    let errors = client.stderr.take().unwrap();
    client.kill().unwrap();
    client.wait().unwrap();
    Orphans(errors)
}

fn marks(stage: &Stage) -> usize {
    std::fs::read_to_string(stage.path("mark")).unwrap_or_default().lines().count()
}

/// A command that leaves a mark beside the workspace, and waits for a file in it.
fn waiting(stage: &Stage) -> Value {
    let mark = stage.path("mark");
    let command = format!(
        "echo ran >> {}; echo half > note.txt; while [ ! -e go ]; do sleep 0.05; done; echo done > note.txt",
        mark.display()
    );
    json!({"command": command})
}

#[test]
fn a_call_of_a_killed_client_is_finished_once() {
    let stage = Stage::new();
    let client = start(&stage, &[], "shell", &waiting(&stage));
    wait_until("the call", || marks(&stage) == 1 && stage.file("note.txt").is_some());
    let server = kill(client);
    std::fs::write(stage.path("files/go"), "").unwrap();
    server.await_end();
    assert_eq!(stage.file("note.txt").unwrap(), "done\n");
    let mut next = Client::connected(&stage, &[]);
    let again = next.call_as("toolu_it", "shell", waiting(&stage));
    worked(&again);
    assert_eq!(again["result"]["_meta"]["backstitch/call"]["repeated"], true, "{again}");
    assert_eq!(marks(&stage), 1);
    assert_eq!(next.leave().code, Some(0));
    stage.run(&["verify"]).worked_quietly();
}

#[test]
fn a_client_that_cancels_and_leaves_at_once_has_cancelled() {
    for _ in 0..4 {
        let stage = Stage::new();
        let mut client = Client::connected(&stage, &[]);
        let id = client.post_call(None, "shell", json!({"command": "echo half > half.txt; sleep 600"}));
        wait_until("the call", || stage.file("half.txt").is_some());
        let cancelled = json!({"requestId": id});
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled}));
        let left = client.leave();
        assert_eq!(left.code, Some(0), "{}", left.errors);
        assert_eq!(stage.file("half.txt"), None);
    }
}

#[test]
fn a_call_of_a_killed_client_that_waits_for_approval_is_given_up() {
    let stage = Stage::new();
    let approved = ["--approve", "shell"];
    let client = start(&stage, &approved, "shell", &waiting(&stage));
    wait_until("the pause", || stage.run(&["ls", "--json"]).output.contains("\"reason\":\"approval\""));
    kill(client).await_end();
    assert_eq!(marks(&stage), 0);
    let mut next = Client::connected(&stage, &approved);
    let (told, is_error) = super::client::text(&next.call_as("toolu_it", "shell", waiting(&stage)));
    assert!(is_error && told.contains("gone"), "{told}");
    assert_eq!((marks(&stage), stage.file("note.txt")), (0, None));
    assert_eq!(next.leave().code, Some(0));
    assert_eq!(stage.json(&["ls"])["status"], "idle");
}

#[test]
fn a_client_that_is_killed_at_any_time_finds_its_call_done_once() {
    let mut random = u64::from(std::process::id()).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    for _ in 0..5 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let stage = Stage::new();
        std::fs::write(stage.path("files/go"), "").unwrap();
        let client = start(&stage, &[], "shell", &waiting(&stage));
        std::thread::sleep(Duration::from_micros((random >> 33) % 500_000));
        kill(client).await_end();
        // It was never received, or it was finished.
        let note = stage.file("note.txt");
        assert!(note.is_none() || note.as_deref() == Some("done\n"), "{note:?}");
        assert_eq!(marks(&stage), usize::from(note.is_some()));
        let mut next = Client::connected(&stage, &[]);
        worked(&next.call_as("toolu_it", "shell", waiting(&stage)));
        assert_eq!((marks(&stage), stage.file("note.txt").as_deref()), (1, Some("done\n")));
        assert_eq!(next.leave().code, Some(0));
        stage.run(&["verify"]).worked_quietly();
    }
}
