//! The server against clients of others: the SDKs for Python and TypeScript.
//!
//! `BACKSTITCH_MCP_PACKAGES` names the directory that `./test` installs them in. Without it the tests say that they
//! are skipped.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use super::client::AGENT;
use super::http_client::{HttpServer, TOKEN};
use crate::stage::{Stage, scripted, text_of, wait_until};

const PYTHON: &str = include_str!("client.py");
const NODE: &str = include_str!("client.mjs");

/// A server with a tool of each kind.
const EVERYTHING: &str = "node_modules/@modelcontextprotocol/server-everything/dist/index.js";

/// Returns the directory of the packages, or says that the test is skipped.
#[expect(clippy::print_stderr, reason = "a skipped comparison is reported")]
fn packages(needed: &str) -> Option<PathBuf> {
    let directory = std::env::var_os("BACKSTITCH_MCP_PACKAGES").map(PathBuf::from);
    let found = directory.filter(|directory| directory.join(needed).exists());
    if found.is_none() {
        eprintln!("SKIPPED: BACKSTITCH_MCP_PACKAGES names no directory with {needed}; ./test installs it");
    }
    found
}

/// The way to the server.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    Pipes,
    Http,
}

fn compare(mut client: Command, way: Way) {
    let stage = Stage::new();
    // A server of others behind ours, which returns an image.
    let images = packages(EVERYTHING).filter(|_| way == Way::Pipes).map(|packages| {
        client.env("IMAGE_TOOL", "it__get-tiny-image");
        let command = json!(["node", text_of(&packages.join(EVERYTHING)), "stdio"]);
        format!("[[mcp]]\nname = \"it\"\ncommand = {command}\n")
    });
    let agent = stage.write("tailor.toml", &format!("{AGENT}{}", images.unwrap_or_default()));
    let server = (way == Way::Http).then(|| HttpServer::start(&stage, &[]));
    if let Some(server) = &server {
        client.env("SERVER_URL", &server.url).env("SERVER_TOKEN", TOKEN);
    } else {
        let server = stage.command(&["mcp", "serve", "--agent", &agent, "--sandbox", "off"]);
        let words: Vec<_> = std::iter::once(server.get_program()).chain(server.get_args()).collect();
        let words: Vec<_> = words.iter().map(|word| word.to_str().unwrap()).collect();
        client.env("SERVER", json!(words).to_string());
    }
    client.current_dir(stage.path("files"));
    client.env("XDG_CONFIG_HOME", stage.path("config")).env("XDG_STATE_HOME", stage.path("state"));
    let ran = client.output().unwrap();
    let (output, errors) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{output}\n{errors}");
    assert!(output.contains("all as expected"), "{output}\n{errors}");
    assert_eq!(stage.file("note.txt").unwrap(), "seven\n");
}

fn compare_python(way: Way) {
    let Some(packages) = packages("venv/bin/python") else { return };
    let mut client = Command::new(packages.join("venv/bin/python"));
    client.args(["-c", PYTHON]);
    compare(client, way);
}

fn compare_typescript(way: Way) {
    let Some(packages) = packages("node_modules/@modelcontextprotocol/sdk") else { return };
    // A script finds its packages beside itself. Several tests write it at the same time.
    let script = packages.join(format!("backstitch-client-{}.mjs", std::process::id()));
    std::fs::write(&script, NODE).unwrap();
    let mut client = Command::new("node");
    client.arg(text_of(&script));
    compare(client, way);
    let _ = std::fs::remove_file(script);
}

#[test]
fn the_python_sdk_finds_everything_as_expected() {
    compare_python(Way::Pipes);
}

#[test]
fn the_python_sdk_finds_everything_as_expected_over_http() {
    compare_python(Way::Http);
}

#[test]
fn the_typescript_sdk_finds_everything_as_expected() {
    compare_typescript(Way::Pipes);
}

#[test]
fn the_typescript_sdk_finds_everything_as_expected_over_http() {
    compare_typescript(Way::Http);
}

/// Runs calls of a server of others, and returns the session.
fn call_all(stage: &Stage, server: &str, calls: &[Value]) -> String {
    let agent = stage.write(
        "outer.toml",
        &format!("name = \"outer\"\ntools = [\"shell\"]\n[approval]\ndefault = \"auto\"\n[[mcp]]\nname = \"it\"\n{server}\n"),
    );
    let replies: Vec<Value> =
        calls.iter().map(|call| json!({"calls": [call]})).chain([json!({"text": "Done."})]).collect();
    let model = scripted(stage, &json!(replies));
    let ran = stage.run(&["run", "Sew", "--agent", &agent, "--model", &model]);
    assert_eq!(ran.code, Some(0), "{}", ran.errors);
    stage.json(&["show", &stage.session()]).to_string()
}

#[test]
fn the_server_everything_is_used_as_expected() {
    let Some(packages) = packages(EVERYTHING) else { return };
    let stage = Stage::new();
    let server = format!("command = {}", json!(["node", text_of(&packages.join(EVERYTHING)), "stdio"]));
    let session = call_all(
        &stage,
        &server,
        &[
            json!({"name": "it__echo", "arguments": {"message": "thimble"}}),
            json!({"name": "it__get-sum", "arguments": {"a": 20, "b": 22}}),
            json!({"name": "it__get-tiny-image", "arguments": {}}),
            json!({"name": "it__get-sum", "arguments": {"a": "many"}}),
        ],
    );
    assert!(session.contains("Echo: thimble"), "{session}");
    assert!(session.contains("42"), "{session}");
    assert!(session.contains("image/png"), "{session}");
    assert!(session.contains("many"), "{session}");
}

#[test]
fn the_server_everything_is_used_over_http_and_reached_again() {
    let Some(packages) = packages(EVERYTHING) else { return };
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
    let start = || {
        let mut server = Command::new("node");
        server.arg(packages.join(EVERYTHING)).arg("streamableHttp").env("PORT", &port);
        let server = server.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        wait_until("the server", || std::net::TcpStream::connect(format!("127.0.0.1:{port}")).is_ok());
        KilledAtEnd(server)
    };
    let stage = Stage::new();
    let first = start();
    let wait = "touch ../wanted; while [ ! -e ../go ]; do sleep 0.05; done";
    let calls = [
        json!({"name": "it__echo", "arguments": {"message": "thimble"}}),
        json!({"name": "it__get-sum", "arguments": {"a": 20, "b": 22}}),
        json!({"name": "it__get-tiny-image", "arguments": {}}),
        json!({"name": "it__get-sum", "arguments": {"a": "many"}}),
        json!({"name": "shell", "arguments": {"command": wait}}),
        json!({"name": "it__echo", "arguments": {"message": "bobbin"}}),
    ];
    let url = format!("url = \"http://127.0.0.1:{port}/mcp\"");
    let session = std::thread::scope(|scope| {
        let ran = scope.spawn(|| call_all(&stage, &url, &calls));
        wait_until("the calls", || stage.path("wanted").exists() || ran.is_finished());
        drop(first);
        let second = start();
        std::fs::write(stage.path("go"), "").unwrap();
        let ran = ran.join().unwrap();
        drop(second);
        ran
    });
    for words in ["Echo: thimble", "42", "image/png", "many", "Echo: bobbin"] {
        assert!(session.contains(words), "{words}: {session}");
    }
}

/// A process that is killed when the test ends.
struct KilledAtEnd(Child);

impl Drop for KilledAtEnd {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn the_server_filesystem_is_rolled_back_and_confined() {
    let package = "node_modules/@modelcontextprotocol/server-filesystem/dist/index.js";
    let Some(packages) = packages(package) else { return };
    let stage = Stage::confined();
    std::fs::create_dir(stage.path("beside")).unwrap();
    let (files, beside) = (text_of(&stage.path("files")), text_of(&stage.path("beside")));
    let server = format!("command = {}", json!(["node", text_of(&packages.join(package)), files, beside]));
    let write = |directory: &str| json!({"name": "it__write_file", "arguments": {"path": format!("{directory}/a.txt"), "content": "one\n"}});
    let edit = json!({"name": "it__edit_file", "arguments": {
        "path": format!("{files}/a.txt"), "edits": [{"oldText": "no such text", "newText": "two"}],
    }});
    let session = call_all(&stage, &server, &[write(&files), edit, write(&beside)]);
    assert_eq!(stage.file("a.txt").unwrap(), "one\n");
    assert!(!stage.path("beside/a.txt").exists(), "the sandbox holds: {session}");
    // The files of the server are those of the session: a rewind covers them.
    stage.run(&["rewind", &stage.session(), "start"]).worked();
    assert_eq!(stage.file("a.txt"), None);
}
