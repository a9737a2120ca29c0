//! Tools of MCP servers over HTTP in agents. The server is the command itself, on another stage, or a socket that answers
//! as a test wants.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::http_client::{HttpServer, TOKEN};
use crate::stage::{Stage, scripted, wait_until};

/// A stage whose environment has the token.
fn outer() -> Stage {
    Stage::new().with_variable("THREAD_TOKEN", TOKEN)
}

/// Writes an agent file with the server `inner` at a URL, and returns its path.
fn agent(stage: &Stage, url: &str, more: &str) -> String {
    let headers = "headers = { Authorization = \"Bearer THREAD_TOKEN\" }";
    let server = format!("[[mcp]]\nname = \"inner\"\nurl = \"{url}\"\n{headers}\n{more}\n");
    stage.write("outer.toml", &format!("name = \"outer\"\ntools = [\"shell\"]\n\n{server}"))
}

fn call(name: &str, arguments: Value) -> Value {
    json!({"calls": [{"name": name, "arguments": arguments}]})
}

/// Runs the calls one after the other, and returns the session as `show --json` prints it.
fn run(stage: &Stage, agent: &str, calls: &[Value]) -> String {
    let mut replies = calls.to_vec();
    replies.push(json!({"text": "Done."}));
    let model = scripted(stage, &json!(replies));
    let ran = stage.run(&["run", "Sew", "--agent", agent, "--model", &model]);
    assert_eq!(ran.code, Some(0), "{}", ran.errors);
    stage.json(&["show", &stage.session()]).to_string()
}

/// A call that waits for a file beside the workspace.
fn wait_for(name: &str) -> Value {
    let command = format!("touch ../{name}-wanted; while [ ! -e ../{name} ]; do sleep 0.05; done");
    call("shell", json!({"command": command}))
}

/// A socket that gives every connection the same answer, and keeps what it was sent.
struct FixedAnswer {
    address: String,
    requests: Arc<Mutex<Vec<String>>>,
}

impl FixedAnswer {
    fn start(answer: impl Into<String>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (kept, answer) = (requests.clone(), answer.into());
        std::thread::spawn(move || {
            for mut stream in listener.incoming().map_while(Result::ok) {
                let mut head = Vec::new();
                let mut buffer = [0; 4096];
                while !head.windows(4).any(|end| end == b"\r\n\r\n") {
                    match stream.read(&mut buffer) {
                        Ok(count @ 1..) => head.extend(&buffer[..count]),
                        _ => break,
                    }
                }
                kept.lock().unwrap().push(String::from_utf8_lossy(&head).into_owned());
                let _ = stream.write_all(answer.as_bytes());
            }
        });
        Self { address, requests }
    }

    fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

fn answer(status: &str, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len())
}

#[test]
fn a_model_calls_tools_over_http() {
    let inner = Stage::new();
    let server = HttpServer::start(&inner, &[]);
    let stage = outer();
    let agent = agent(&stage, &server.url, "exclude = [\"fork\", \"shell\"]");
    let calls = [
        call("inner__write_file", json!({"path": "a.txt", "text": "one\n"})),
        json!({"calls": [
            {"name": "inner__read_file", "arguments": {"path": "a.txt"}},
            {"name": "inner__checkpoints", "arguments": {}},
            {"name": "inner__log", "arguments": {}},
        ]}),
        call("inner__mend", json!({"script": "echo broken > a.txt; exit 3"})),
        call("inner__read_file", json!({"wrong": 1})),
        call("inner__shell", json!({"command": "true"})),
    ];
    let session = run(&stage, &agent, &calls);
    assert_eq!(inner.file("a.txt").unwrap(), "one\n");
    assert!(
        session.contains("created a.txt") && session.contains("exit code 3")
            || session.contains("exit code 3"),
        "{session}"
    );
    assert!(session.contains("there is no tool \\\"inner__shell\\\""), "{session}");
    let stored = String::from_utf8_lossy(&stage.stored_bytes()).into_owned();
    assert!(!stored.contains(TOKEN) && !session.contains(TOKEN));
    // The list of tools is recorded, so a session that is continued needs no server until it calls a tool.
    server.kill();
    let mut replies = vec![json!({"text": "before"}); calls.len() + 1];
    replies.push(json!({"text": "Nothing."}));
    let model = scripted(&stage, &json!(replies));
    stage.run(&["ask", &stage.session(), "What now?", "--model", &model]).worked_quietly();
}

#[test]
fn a_server_that_was_started_again_is_reached_again() {
    let inner = Stage::new();
    let server = HttpServer::start(&inner, &[]);
    let port = server.port();
    let stage = outer();
    let agent = agent(&stage, &server.url, "");
    let write = |name: &str| call("inner__write_file", json!({"path": name, "text": "one\n"}));
    let calls = [
        write("a.txt"),
        wait_for("idle-restart"),
        // The new process does not know the client.
        write("b.txt"),
        // It dies in a call.
        call(
            "inner__mend",
            json!({"script": "echo half > half.txt; kill -9 $(cut -d' ' -f4 /proc/$PPID/stat); sleep 600"}),
        ),
        wait_for("restart"),
        write("c.txt"),
    ];
    let running = {
        std::thread::scope(|scope| {
            let ran = scope.spawn(|| run(&stage, &agent, &calls));
            wait_until("the first call", || stage.path("idle-restart-wanted").exists());
            server.kill();
            let server = HttpServer::start_at(&inner, &port, &[]);
            std::fs::write(stage.path("idle-restart"), "").unwrap();
            wait_until("the death", || stage.path("restart-wanted").exists());
            drop(server);
            let server = HttpServer::start_at(&inner, &port, &[]);
            std::fs::write(stage.path("restart"), "").unwrap();
            let ran = ran.join().unwrap();
            drop(server);
            ran
        })
    };
    for name in ["a.txt", "b.txt", "c.txt"] {
        assert_eq!(inner.file(name).unwrap(), "one\n", "{running}");
    }
    assert!(running.contains("ended before it answered"), "{running}");
    assert_eq!(inner.file("half.txt"), None);
}

#[test]
fn a_call_that_takes_too_long_is_cancelled_at_the_server() {
    let inner = Stage::new();
    let server = HttpServer::start(&inner, &[]);
    let stage = outer();
    let limited = agent(&stage, &server.url, "timeout = \"3s\"");
    let mend = call("inner__mend", json!({"script": "echo half > half.txt; sleep 600"}));
    let session = run(&stage, &limited, &[mend]);
    assert!(session.contains("longer than"), "{session}");
    wait_until("the rollback", || inner.file("half.txt").is_none());
    // The limit would hold for this call too.
    let unlimited = agent(&stage, &server.url, "");
    run(&stage, &unlimited, &[call("inner__write_file", json!({"path": "a.txt", "text": "one\n"}))]);
    assert_eq!(inner.file("a.txt").unwrap(), "one\n");
}

#[test]
fn headers_go_to_no_other_host_and_into_no_error() {
    let stage = outer();
    let model = scripted(&stage, &json!([{"text": "Done."}]));
    let other = FixedAnswer::start(answer("200 OK", "Content-Type: application/json\r\n", "{}"));
    for status in
        ["301 Moved", "302 Found", "303 See Other", "307 Temporary Redirect", "308 Permanent Redirect"]
    {
        let location = format!("Location: http://{}/mcp\r\n", other.address);
        let server = FixedAnswer::start(answer(status, &location, "elsewhere"));
        let agent = agent(&stage, &format!("http://{}/mcp", server.address), "");
        let ran = stage.run(&["run", "Sew", "--agent", &agent, "--model", &model]);
        assert_eq!(ran.code, Some(2), "{status}\n{}", ran.errors);
        assert!(server.requests()[0].contains(TOKEN), "the server itself gets the header");
        assert!(ran.errors.contains("inner") && !ran.errors.contains(TOKEN), "{}", ran.errors);
    }
    assert_eq!(other.requests(), Vec::<String>::new());
    // A server that repeats what it was sent.
    let page = format!("{}you sent Bearer {TOKEN}", "<html>".repeat(10_000));
    for (status, kind) in
        [("401 Unauthorized", "text/html"), ("500 Error", "text/html"), ("400 Bad", "application/json")]
    {
        for body in [format!("you sent Bearer {TOKEN}"), page.clone()] {
            let server = FixedAnswer::start(answer(status, &format!("Content-Type: {kind}\r\n"), &body));
            let agent = agent(&stage, &format!("http://{}/mcp", server.address), "");
            let ran = stage.run(&["run", "Sew", "--agent", &agent, "--model", &model]);
            assert_eq!(ran.code, Some(2), "{status}\n{}", ran.errors);
            assert!(!ran.errors.contains(TOKEN) && ran.errors.len() < 4000, "{}", ran.errors);
        }
    }
}

#[test]
fn wrong_addresses_are_explained_and_start_nothing() {
    let stage = outer();
    let inner = Stage::new();
    let server = HttpServer::start(&inner, &[]);
    let garbage = FixedAnswer::start("\u{0}\u{1b}[2J garbage");
    let model = scripted(&stage, &json!([{"text": "Done."}]));
    for (text, words) in [
        (format!("url = \"{}\"\ncommand = [\"true\"]", server.url), "either"),
        (format!("url = \"{}\"\nenv = {{ A = \"THREAD_TOKEN\" }}", server.url), "headers"),
        ("command = [\"true\"]\nheaders = { A = \"THREAD_TOKEN\" }".to_owned(), "env"),
        ("url = \"ftp://localhost/\"".to_owned(), "http"),
        ("url = \"http://me:secret@localhost/\"".to_owned(), "passwords"),
        ("url = \"no address\"".to_owned(), "URL"),
        (
            format!("url = \"{}\"\nheaders = {{ Authorization = \"Bearer silk-7-literal\" }}", server.url),
            "environment variable",
        ),
        (format!("url = \"{}\"\nheaders = {{ \"a b\" = \"THREAD_TOKEN\" }}", server.url), "header"),
        (format!("url = \"{}\"\nheaders = {{ Mcp-Session-Id = \"THREAD_TOKEN\" }}", server.url), "protocol"),
        (format!("url = \"{}\"\nheaders = {{ A = \"NO_SUCH_VARIABLE\" }}", server.url), "NO_SUCH_VARIABLE"),
        // Without the token, at a wrong path, at a port that nobody listens at, and at one that speaks something else.
        (format!("url = \"{}\"", server.url), "uth"),
        (
            format!(
                "url = \"{}/other\"\nheaders = {{ Authorization = \"Bearer THREAD_TOKEN\" }}",
                server.url
            ),
            "404",
        ),
        ("url = \"http://127.0.0.1:1/mcp\"".to_owned(), "refused"),
        (format!("url = \"http://{}/mcp\"", garbage.address), "does not answer as expected"),
        (format!("url = \"https://{}/mcp\"", server.address), "does not answer as expected"),
    ] {
        let file = format!("name = \"outer\"\ntools = []\n[[mcp]]\nname = \"inner\"\n{text}\n");
        let agent = stage.write("bad.toml", &file);
        let ran = stage.run(&["run", "Sew", "--agent", &agent, "--model", &model]);
        assert_eq!(ran.code, Some(2), "{text}\n{}", ran.errors);
        assert!(ran.errors.contains(words), "{text}\n{}", ran.errors);
        assert!(!ran.errors.contains("panicked") && !ran.errors.contains("silk-7"), "{}", ran.errors);
        assert!(!ran.errors.contains(TOKEN) && !ran.errors.contains('\u{1b}'), "{}", ran.errors);
    }
    assert!(!stage.path("store/store.db").exists(), "nothing was started");
}

#[test]
fn the_address_of_a_project_that_is_not_trusted_is_not_used() {
    let stage = outer();
    let server = FixedAnswer::start(answer("200 OK", "", ""));
    let file = format!(
        "name = \"outer\"\ntools = []\n[[mcp]]\nname = \"inner\"\nurl = \"http://{}/mcp\"\nheaders = {{ A = \"THREAD_TOKEN\" }}\n",
        server.address
    );
    std::fs::write(stage.path("files/agent.toml"), file).unwrap();
    let model = scripted(&stage, &json!([{"text": "Done."}]));
    let ran = stage.run(&["run", "Sew", "--agent", "agent.toml", "--model", &model]);
    assert!(ran.errors.contains("not_trusted"), "{}", ran.errors);
    assert_eq!(server.requests(), Vec::<String>::new());
}

#[test]
fn an_imported_session_sends_nothing_to_an_address_that_the_user_did_not_choose() {
    let inner = Stage::new();
    let server = HttpServer::start(&inner, &[]);
    let theirs = outer();
    let agent = agent(&theirs, &server.url, "");
    run(&theirs, &agent, &[call("inner__read_file", json!({"path": "a.txt"}))]);
    let bundle = theirs.path("bundle");
    theirs.run(&["export", &theirs.session(), "--bundle", bundle.to_str().unwrap()]).worked_quietly();
    let ours = outer();
    ours.run(&["import", bundle.to_str().unwrap()]).worked_quietly();
    let model = scripted(
        &ours,
        &json!([{"text": "before"}, {"text": "before"}, call("inner__read_file", json!({"path": "a.txt"})), {"text": "Done."}]),
    );
    let session = ours.session();
    let ran = ours.run(&["ask", &session, "Again", "--model", &model]);
    assert_ne!(ran.code, Some(0), "{}", ran.output);
    assert!(ran.errors.contains("THREAD_TOKEN") && ran.errors.contains(&server.url), "{}", ran.errors);
    assert!(!ran.errors.contains(TOKEN), "{}", ran.errors);
}
