//! The token of a server over HTTP, and addresses that are refused. Which requests are let in is tested in the crate of the
//! protocol.

use std::io::Read as _;
use std::net::TcpListener;

use serde_json::json;

use super::client::{AGENT, worked};
use super::http_client::{HttpServer, TOKEN};
use crate::stage::{Stage, ended, signal};

#[test]
fn a_token_is_made_and_printed_once_if_there_is_none() {
    let stage = Stage::new();
    let agent = stage.write("tailor.toml", AGENT);
    let arguments = ["mcp", "serve", "--agent", &agent, "--sandbox", "off", "--http", "0"];
    let tokens: Vec<String> = (0..2)
        .map(|_| {
            let mut child = stage.command(&arguments).spawn().unwrap();
            let mut url = [0; 7];
            child.stdout.as_mut().unwrap().read_exact(&mut url).unwrap();
            signal(&child, "TERM");
            let ran = ended(child);
            let line = ran
                .errors
                .lines()
                .find(|line| line.starts_with("claude mcp add") || line.contains("claude mcp add"));
            assert!(line.unwrap().contains("--transport http tailor http://127.0.0.1:"), "{}", ran.errors);
            let (_, token) = ran.errors.split_once("token of this run: ").unwrap();
            token.lines().next().unwrap().to_owned()
        })
        .collect();
    assert_ne!(tokens[0], tokens[1]);
    assert_eq!(tokens[0].len(), 64);
    // A token that was given is not printed.
    let file = stage.write("token", "linen-thread-of-nine-spools\n");
    let with_file = [&arguments[..], &["--token-file", &file]].concat();
    let mut child = stage.command(&with_file).spawn().unwrap();
    let mut url = [0; 7];
    child.stdout.as_mut().unwrap().read_exact(&mut url).unwrap();
    signal(&child, "TERM");
    let ran = ended(child);
    assert!(!ran.errors.contains("linen") && !ran.errors.contains("claude"), "{}", ran.errors);
    assert!(ran.errors.contains("chmod 600"), "{}", ran.errors);
}

#[test]
fn the_token_is_hidden_from_the_commands_that_clients_run() {
    let stage = Stage::new();
    let server = HttpServer::start(&stage, &[]);
    let client = server.client();
    let told = worked(
        &client.call("shell", json!({"command": "env; tr '\\0' '\\n' < /proc/$PPID/environ || true"})),
    );
    assert!(!told.contains(TOKEN), "{told}");
    // What a command finds out about it is not recorded.
    let half = TOKEN.split_at(10);
    let command = format!("printf '%s%s' {} {}", half.0, half.1);
    assert!(!worked(&client.call("shell", json!({"command": command}))).contains(TOKEN));
    server.end();
    let stored = String::from_utf8_lossy(&stage.stored_bytes()).into_owned();
    assert!(!stored.contains(TOKEN));
}

#[test]
fn addresses_and_tokens_that_cannot_be_used_are_refused_before_anything_starts() {
    let stage = Stage::new();
    let agent = stage.write("tailor.toml", AGENT);
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    let short = stage.write("short", "seven");
    for (more, code, words) in [
        (vec!["--http", "0.0.0.0:0"], 2, "loopback"),
        (vec!["--http", "[::]:0"], 2, "loopback"),
        (vec!["--http", "nonsense"], 2, "HOST:PORT"),
        (vec!["--http", "70000"], 2, "HOST:PORT"),
        (vec!["--http", ":80"], 2, "HOST:PORT"),
        (vec!["--http", "localhost:"], 2, "HOST:PORT"),
        (vec!["--http", "no such host:80"], 2, "host"),
        (vec!["--http", &taken], 1, "cannot be opened"),
        (vec!["--http", "0", "--token-file", "no-such-file"], 1, "no-such-file"),
        (vec!["--http", "0", "--token-file", &short], 2, "characters"),
        (vec!["--http", "0", "--allow-host", "a b"], 2, "--allow-host"),
        (vec!["--http", "0", "--allow-host", "a:80"], 2, "without a port"),
        (vec!["--token-file", &short], 2, "--http"),
        (vec!["--allow-host", "a"], 2, "--http"),
    ] {
        let arguments = [&["mcp", "serve", "--agent", &agent][..], &more].concat();
        let ran = stage.run(&arguments);
        assert_eq!(ran.code, Some(code), "{more:?}\n{}", ran.errors);
        assert!(ran.errors.contains(words) && !ran.errors.contains("panicked"), "{more:?}\n{}", ran.errors);
        assert!(!ran.errors.contains("seven"), "{}", ran.errors);
    }
    let stage = stage.with_variable("BACKSTITCH_MCP_TOKEN", "line\nbreak-line-break");
    let ran = stage.run(&["mcp", "serve", "--agent", &agent, "--http", "0"]);
    assert_eq!(ran.code, Some(2), "{}", ran.errors);
    assert!(
        ran.errors.contains("BACKSTITCH_MCP_TOKEN") && !ran.errors.contains("break-line"),
        "{}",
        ran.errors
    );
    assert!(!stage.path("store/store.db").exists(), "nothing was started");
}

#[test]
fn the_token_of_a_file_is_redacted() {
    let stage = Stage::new();
    let token = "spool-of-the-token-file-7";
    let file = stage.write("token", token);
    let server = HttpServer::start(&stage, &["--token-file", &file]);
    let client = server.client_with_token(token);
    let shown = worked(&client.call("shell", json!({"command": format!("cat {file}")})));
    assert!(!shown.contains(token) && shown.contains("[secret]"), "{shown}");
    drop(server);
    let stored = String::from_utf8_lossy(&stage.stored_bytes()).into_owned();
    assert!(!stored.contains(token));
}
