//! `serve`: the server as a process, which is killed and started again.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};

use backstitch_testkit::api::ApiClient;
use serde_json::{Value, json};

use crate::stage::{Stage, ended, scripted, signal, text_of, wait_until};

/// A server that runs.
pub(crate) struct Served {
    child: Option<Child>,
    pub(crate) client: ApiClient,
    _output: BufReader<ChildStdout>,
}

impl Served {
    pub(crate) fn start(stage: &Stage, arguments: &[&str]) -> Self {
        let mut all = vec!["serve", "--listen", "0"];
        all.extend(arguments);
        let mut child = stage.command(&all).stderr(Stdio::null()).spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut link = String::new();
        output.read_line(&mut link).unwrap();
        Self { child: Some(child), client: ApiClient::of_link(&link), _output: output }
    }

    /// Kills it without a word.
    fn kill(mut self) {
        let mut child = self.child.take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// Ends it by a signal, and returns its exit code.
    pub(crate) fn end(mut self) -> Option<i32> {
        let child = self.child.take().unwrap();
        signal(&child, "TERM");
        ended(child).code
    }

    fn session(&self, session: &str) -> Value {
        self.client.get(&format!("/api/v1/sessions/{session}"))
    }

    /// Whether a run of the session has not ended, with everything that it holds.
    fn is_running(&self, session: &str) -> bool {
        let runs = self.client.get("/api/v1/runs");
        let mut runs = runs["runs"].as_array().unwrap().iter();
        runs.any(|run| run["session"] == session && run["state"] == "running")
    }

    pub(crate) fn wait_for(&self, session: &str, status: &str) -> Value {
        // A run that has ended holds its session for a moment, and its directory for another one.
        wait_until(&format!("{session} {status}"), || {
            let now = self.session(session);
            now["status"] == status && now["holder"].is_null() && !self.is_running(session)
        });
        self.session(session)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// An agent file whose model runs these commands, and then answers.
pub(crate) fn agent(stage: &Stage, commands: &[&str], mode: &str) -> String {
    let mut replies: Vec<Value> = commands
        .iter()
        .map(|command| json!({"call": [{"name": "shell", "arguments": {"command": command}}]}))
        .collect();
    replies.push(json!({"text": "It is sewn."}));
    replies.push(json!({"text": "It is red."}));
    let model = scripted(stage, &json!(replies));
    let text = format!(
        "name = 'tailor'\nmodel = '{model}'\ntools = ['shell', 'write_file']\nmode = '{mode}'\nsandbox = 'off'\n[shell]\neffect = 'workspace'\n"
    );
    stage.write("tailor.toml", &text)
}

#[test]
fn a_whole_life_with_a_kill_of_the_server() {
    let stage = Stage::new();
    // It waits inside of the call, until the test lets it continue.
    let go = stage.path("go");
    let command = format!(
        "echo half > hem.txt; while [ ! -e {} ]; do sleep 0.05; done; echo whole > hem.txt",
        go.display()
    );
    let agent = agent(&stage, &[&command], "ask");
    // A fork works in a directory beside that of its parent.
    let root = text_of(&stage.path(""));
    let arguments = ["--write", "--root", root.as_str(), "--agent", agent.as_str()];
    let served = Served::start(&stage, &arguments);
    assert_eq!(served.client.get("/api/v1/agents")["agents"][0]["name"], "tailor");
    let new = json!({"mission": "Sew the hem", "agent": "tailor"});
    let session = served.client.post("/api/v1/sessions", &new)["session"].as_str().unwrap().to_owned();
    let base = format!("/api/v1/sessions/{session}");
    let mut events = served.client.events(&format!("{base}/events"), None);
    let mut last = 0;
    for event in events.by_ref() {
        last = event.id.unwrap_or(last);
        if event.data["kind"] == "paused" {
            break;
        }
    }
    let waiting = served.wait_for(&session, "paused");
    let call = waiting["decisions"][0]["call"].as_str().unwrap().to_owned();
    served.client.post(&format!("{base}/decide"), &json!({"calls": [call], "decision": "approve"}));
    served.client.post(&format!("{base}/resume"), &json!({}));
    wait_until("the command", || stage.file("hem.txt").is_some());
    served.kill();

    // The next one finds the session interrupted, and resumes it at the call.
    std::fs::write(&go, "").unwrap();
    let served = Served::start(&stage, &arguments);
    assert_eq!(served.session(&session)["status"], "interrupted");
    let mut events = served.client.events(&format!("{base}/events"), Some(last));
    served.client.post(&format!("{base}/resume"), &json!({}));
    let mut next = last + 1;
    for event in events.by_ref() {
        if let Some(position) = event.id {
            assert_eq!(position, next, "no record is missed");
            next += 1;
        }
        if event.data["kind"] == "evaluation_finished" {
            break;
        }
    }
    let answered = served.wait_for(&session, "idle");
    assert_eq!(answered["outcome"], "completed");
    assert_eq!(stage.file("hem.txt").as_deref(), Some("whole\n"));

    served.client.post(&format!("{base}/rewind"), &json!({"to": "start"}));
    assert_eq!(stage.file("hem.txt"), None);
    served.client.post(&format!("{base}/undo"), &json!({}));
    assert_eq!(stage.file("hem.txt").as_deref(), Some("whole\n"));
    let fork = served.client.post(&format!("{base}/fork"), &json!({"at": format!("after:{call}")}));
    assert_eq!(fork["fork_of"], session.as_str());
    assert_eq!(std::fs::read_to_string(stage.path("files-fork-1/hem.txt")).unwrap(), "whole\n");
    served.client.post(&format!("{base}/redact"), &json!({"value": "Sew the hem"}));
    assert!(!served.session(&session).to_string().contains("Sew the hem"));
    assert_eq!(served.client.try_delete(&base).0, 409, "a fork depends on it");
    let (status, removed) = served.client.try_delete(&format!("{base}?with_forks=true"));
    assert_eq!(status, 200, "{removed}");
    assert_eq!(served.end(), Some(130));
    assert!(stage.run(&["ls", "--json"]).output.is_empty());
}

#[test]
fn a_signal_pauses_what_is_driven_and_ends_streams() {
    let stage = Stage::new();
    let go = stage.path("go");
    let command = format!(
        "echo half > hem.txt; while [ ! -e {} ]; do sleep 0.05; done; echo whole > hem.txt",
        go.display()
    );
    let agent = agent(&stage, &[&command], "auto");
    let served = Served::start(&stage, &["--write", "--agent", &agent]);
    let new = json!({"mission": "Sew the hem", "agent": "tailor"});
    let session = served.client.post("/api/v1/sessions", &new)["session"].as_str().unwrap().to_owned();
    let mut events = served.client.events(&format!("/api/v1/sessions/{session}/events"), None);
    wait_until("the command", || stage.file("hem.txt").is_some());
    assert_eq!(served.end(), Some(130));
    let last = events.by_ref().last().unwrap();
    assert_eq!((last.name.as_str(), &last.data["reason"]), ("end", &json!("shutdown")));
    assert_eq!(stage.file("hem.txt"), None, "the call was rolled back");
    std::fs::write(&go, "").unwrap();
    stage.run(&["resume", &session]).worked_quietly();
    assert_eq!(stage.file("hem.txt").as_deref(), Some("whole\n"));
}

#[test]
fn without_write_nothing_is_changed_and_other_processes_are_seen() {
    let stage = Stage::new();
    let model = scripted(&stage, &json!([{"text": "It is sewn."}]));
    stage.run(&["run", "Sew the hem", "--model", &model]).worked_quietly();
    let session = stage.session();
    let served = Served::start(&stage, &[]);
    assert_eq!(served.client.get("/api/v1/server")["write"], json!(false));
    assert_eq!(served.session(&session)["mission"], "Sew the hem");
    let base = format!("/api/v1/sessions/{session}");
    for (method, path) in [("POST", format!("{base}/rewind")), ("DELETE", base.clone())] {
        assert_eq!(served.client.send(method, &path, &[], b"").status, 403, "{method} {path}");
    }
    let mut events = served.client.events(&format!("{base}/events?from=head"), None);
    assert_eq!(events.next().unwrap().name, "begin");
    stage.run(&["rewind", &session, "start"]).worked_quietly();
    assert!(events.any(|event| event.data["kind"] == "rewound"));
    stage.run(&["rm", &session, "--force"]);
    drop(events);
    assert_eq!(served.end(), Some(130));
}

#[test]
fn a_damaged_session_is_deleted() {
    let stage = Stage::new();
    let model = scripted(&stage, &json!([{"text": "It is sewn."}]));
    stage.run(&["run", "Sew the scarlet hem", "--model", &model]).worked_quietly();
    let damaged = stage.session();
    stage.run(&["run", "Mend the coat", "--model", &model]).worked_quietly();
    let sound = stage.session();
    let path = stage.path("store/store.db");
    let mut bytes = std::fs::read(&path).unwrap();
    let at: Vec<_> = (0..bytes.len() - 7).filter(|at| bytes[*at..].starts_with(b"scarlet")).collect();
    at.iter().for_each(|at| bytes[*at] = b'S');
    std::fs::write(&path, bytes).unwrap();
    let served = Served::start(&stage, &["--write"]);
    let base = format!("/api/v1/sessions/{damaged}");
    let (status, problem) = served.client.try_get(&base);
    assert_eq!((status, &problem["code"]), (500, &json!("store_damaged")), "{problem}");
    assert_eq!(served.client.try_post(&format!("{base}/rewind"), &json!({"to": "start"})).0, 500);
    let (status, removed) = served.client.try_delete(&base);
    assert_eq!(status, 200, "{removed}");
    assert_eq!(served.client.try_get(&base).0, 404);
    assert_eq!(served.session(&sound)["mission"], "Mend the coat");
}

#[test]
fn requests_get_no_more_than_the_person_allowed() {
    let stage = Stage::new();
    let agent = agent(&stage, &[], "ask");
    let served = Served::start(&stage, &["--write", "--agent", &agent]);
    let refused = |body: Value| {
        let (status, problem) = served.client.try_post("/api/v1/sessions", &body);
        assert_eq!((status, &problem["code"]), (403, &json!("beyond_rights")), "{body}: {problem}");
    };
    refused(json!({"mission": "x", "agent": "other"}));
    refused(json!({"mission": "x", "agent": agent}));
    refused(json!({"mission": "x", "agent": "tailor", "mode": "auto"}));
    refused(json!({"mission": "x", "agent": "tailor", "mode": "full"}));
    refused(json!({"mission": "x", "agent": "tailor", "directory": stage.path("")}));
    refused(json!({"mission": "x", "agent": "tailor", "model": "scripted:/etc/passwd"}));
    let (status, problem) = served.client.try_post("/api/v1/sessions", &json!({"mission": "x"}));
    assert_eq!((status, &problem["code"]), (400, &json!("no_model")), "{problem}");
    let new =
        json!({"mission": "x", "agent": "tailor", "mode": "plan", "directory": stage.path("files/new")});
    let session = served.client.post("/api/v1/sessions", &new)["session"].as_str().unwrap().to_owned();
    assert_eq!(served.wait_for(&session, "idle")["outcome"], "completed");
    // A directory beside that of the session is outside of the root.
    let new = json!({"mission": "x", "agent": "tailor", "mode": "plan"});
    let session = served.client.post("/api/v1/sessions", &new)["session"].as_str().unwrap().to_owned();
    served.wait_for(&session, "idle");
    let (status, problem) = served.client.try_post(&format!("/api/v1/sessions/{session}/fork"), &json!({}));
    assert_eq!((status, &problem["code"]), (403, &json!("beyond_rights")));
}

#[test]
fn an_isolated_session_continues_in_its_copy() {
    let stage = Stage::new();
    let agent = agent(&stage, &["echo whole > hem.txt"], "auto");
    let served = Served::start(&stage, &["--write", "--agent", &agent]);
    let new = json!({"mission": "Sew the hem", "agent": "tailor", "isolated": true});
    let session = served.client.post("/api/v1/sessions", &new)["session"].as_str().unwrap().to_owned();
    let base = format!("/api/v1/sessions/{session}");
    served.wait_for(&session, "idle");
    served.client.post(&format!("{base}/ask"), &json!({"text": "Which colour?"}));
    served.wait_for(&session, "idle");
    assert_eq!(stage.file("hem.txt"), None);
    served.client.post(&format!("{base}/apply"), &json!({}));
    assert_eq!(stage.file("hem.txt").as_deref(), Some("whole\n"));
}

#[test]
fn addresses_and_options_are_checked_at_the_start() {
    let stage = Stage::new();
    for (arguments, words) in [
        (&["serve", "--listen", "0"][..], "store"),
        (&["serve", "--listen", "odd"], "HOST:PORT"),
        (&["serve", "--listen", "0.0.0.0:0"], "loopback"),
        (&["serve", "--listen", "0.0.0.0:0", "--allow-host", "build.example.org"], "--tls-cert"),
        (&["serve", "--root", "."], "--write"),
        (&["serve", "--tls-cert", "x.pem"], "--tls-key"),
        (&["serve", "--write", "--tls-cert", "x.pem", "--tls-key", "y.pem"], "x.pem"),
    ] {
        let ran = stage.run(arguments);
        assert_ne!(ran.code, Some(0), "{arguments:?}");
        assert!(ran.errors.contains(words), "{arguments:?}: {}", ran.errors);
    }
}

#[test]
#[expect(clippy::print_stderr, reason = "a skipped test says so")]
fn connections_are_encrypted_with_a_certificate() {
    let stage = Stage::new();
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"])
        .args(["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"])
        .args(["-keyout", "key.pem", "-out", "cert.pem"])
        .current_dir(stage.path(""))
        .stderr(Stdio::null())
        .status();
    let is_curl = Command::new("curl").arg("--version").stdout(Stdio::null()).status();
    if !made.is_ok_and(|made| made.success()) || !is_curl.is_ok_and(|found| found.success()) {
        eprintln!("SKIPPED: openssl and curl are needed for this test");
        return;
    }
    let (cert, key) = (stage.path("cert.pem"), stage.path("key.pem"));
    let files = [cert.to_str().unwrap(), key.to_str().unwrap()];
    let served = Served::start(&stage, &["--write", "--tls-cert", files[0], "--tls-key", files[1]]);
    let url = served.client.address.clone();
    assert!(url.starts_with("https://"), "{url}");
    let got =
        Command::new("curl").args(["--silent", "--cacert", files[0], &format!("{url}/health")]).output();
    let got: Value = serde_json::from_slice(&got.unwrap().stdout).unwrap();
    assert_eq!(got["status"], "ok");
}
