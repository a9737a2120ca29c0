//! Pages of the web: asked about for each host, and never at private addresses that the user did not name.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::pty::Pty;
use crate::sandbox::is_unsupported;
use crate::stage::{Stage, last_line, scripted};

/// A server that answers every request with one page.
struct PageServer {
    host: String,
    count: Arc<AtomicUsize>,
}

impl PageServer {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let host = listener.local_addr().unwrap().to_string();
        let count: Arc<AtomicUsize> = Arc::default();
        let asked = count.clone();
        // The thread ends with the test.
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { return };
                let _ = stream.read(&mut [0; 4096]);
                asked.fetch_add(1, Ordering::SeqCst);
                let body = "<h1>Seams</h1><p>The hem is <b>12 cm</b> long.</p>";
                let head = format!(
                    "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                    body.len()
                );
                let _ = stream.write_all(format!("{head}{body}").as_bytes());
            }
        });
        Self { host, count }
    }

    fn call(&self, path: &str) -> Value {
        fetch(&format!("http://{}/{path}", self.host))
    }

    fn count(&self) -> usize {
        self.count.load(Ordering::SeqCst)
    }
}

fn fetch(url: &str) -> Value {
    json!({"name": "fetch", "arguments": {"url": url}})
}

fn calling(stage: &Stage, calls: &[Value]) -> String {
    let replies = calls.iter().map(|call| json!({"calls": [call]}));
    let replies: Vec<_> = replies.chain([json!({"text": "Done."})]).collect();
    scripted(stage, &json!(replies))
}

/// Writes the settings of the user, who allows the private addresses of these servers.
fn settings(stage: &Stage, servers: &[&PageServer], more: &str) {
    std::fs::create_dir_all(stage.path("config/backstitch")).unwrap();
    let hosts: Vec<_> = servers.iter().map(|server| server.host.as_str()).collect();
    stage.write("config/backstitch/config.toml", &format!("[fetch]\nprivate_hosts = {hosts:?}\n{more}"));
}

#[test]
fn a_page_is_asked_about_in_every_mode_but_full_and_read_as_markdown() {
    if is_unsupported() {
        return;
    }
    let server = PageServer::new();
    for mode in ["plan", "ask", "auto"] {
        let stage = Stage::confined();
        settings(&stage, &[&server], "");
        let model = calling(&stage, &[server.call("")]);
        let before = server.count();
        let paused = stage.run(&["run", "Read it", "--model", &model, "--mode", mode]);
        assert_eq!((paused.code, server.count()), (Some(3), before), "{mode}: {paused:?}");
        stage.run(&["approve", &stage.session()]).worked_quietly();
        assert_eq!(stage.run(&["resume"]).worked_quietly(), "Done.\n");
        assert_eq!(server.count(), before + 1, "{mode}");
        let log = stage.run(&["log", "--all", "--json"]).worked_quietly();
        assert!(log.contains("# Seams") && log.contains("The hem is **12 cm** long."), "{log}");
    }
    let stage = Stage::confined();
    settings(&stage, &[&server], "");
    let model = calling(&stage, &[server.call("")]);
    let arguments = ["run", "Read it", "--model", &model, "--mode", "full", "--trust"];
    assert_eq!(stage.run(&arguments).worked_quietly(), "Done.\n");
}

#[test]
fn rules_decide_by_host() {
    if is_unsupported() {
        return;
    }
    let (allowed, denied) = (PageServer::new(), PageServer::new());
    for mode in ["plan", "ask", "auto"] {
        let stage = Stage::confined();
        let rules =
            format!("[rules]\nallow = ['fetch {}']\ndeny = ['fetch {}']\n", allowed.host, denied.host);
        settings(&stage, &[&allowed, &denied], &rules);
        let model = calling(&stage, &[allowed.call("a"), denied.call("b")]);
        let before = allowed.count();
        assert_eq!(
            stage.run(&["run", "Read it", "--model", &model, "--mode", mode]).worked_quietly(),
            "Done.\n"
        );
        assert_eq!((allowed.count(), denied.count()), (before + 1, 0), "{mode}");
        let log = stage.run(&["log", "--all", "--json"]).worked_quietly();
        assert!(log.contains("a rule of the user denies this call"), "{log}");
    }
}

#[test]
fn always_is_about_one_host() {
    if is_unsupported() {
        return;
    }
    let (first, second) = (PageServer::new(), PageServer::new());
    let stage = Stage::confined();
    settings(&stage, &[&first, &second], "");
    let model = calling(&stage, &[first.call("a"), first.call("b"), second.call("c")]);
    let terminal = Pty::start(&stage, &["run", "Read it", "--model", &model], 160, 40);
    terminal.wait_for("allow it?");
    terminal.send("?\r");
    terminal.wait_for(&format!("every call of fetch to {} in this session", first.host));
    // What is typed before a question is shown does not answer it, and the help asks once more.
    terminal.wait_for_times("allow it?", 2);
    terminal.send("a\r");
    // The second call of the first host is not asked about, that of another one is.
    terminal.wait_for(&format!("| {{\"url\":\"http://{}/c\"}}", second.host));
    terminal.wait_for_times("allow it?", 3);
    assert_eq!((first.count(), second.count()), (2, 0));
    terminal.send("n\r");
    // The help has the word too.
    terminal.wait_for("reason, for the model");
    terminal.send("\r");
    let (code, text) = terminal.finish();
    assert_eq!(code, Some(0), "{text}");
    assert_eq!(second.count(), 0);
}

#[test]
fn a_private_address_needs_a_setting_of_the_user() {
    if is_unsupported() {
        return;
    }
    let server = PageServer::new();
    let refused = "[fetch]\nprivate_hosts = ['127.0.0.1']\n";
    // Neither a project nor its agent file opens one.
    let stage = Stage::confined();
    std::fs::write(stage.path("files/backstitch.toml"), refused).unwrap();
    let model = calling(&stage, &[server.call("")]);
    let errors = stage.run(&["run", "Read it", "--model", &model, "--trust"]).called_wrongly();
    assert!(errors.contains("a project cannot decide which private addresses are read"), "{errors}");

    let stage = Stage::confined();
    std::fs::write(stage.path("files/backstitch.toml"), "agent = 'agent.toml'\n").unwrap();
    let agent = format!("[fetch]\nprivate_hosts = ['{}']\n[approval]\nfetch = 'auto'\n", server.host);
    std::fs::write(stage.path("files/agent.toml"), agent).unwrap();
    let model = calling(&stage, &[server.call("")]);
    let paused = stage.run(&["run", "Read it", "--model", &model, "--trust", "--json"]);
    assert_eq!(paused.code, Some(3), "a project waives no question: {paused:?}");
    let session = last_line(&paused.output)["session"].as_str().unwrap().to_owned();
    stage.run(&["approve", &session]).worked_quietly();
    stage.run(&["resume", &session]).worked_quietly();
    let log = stage.run(&["log", &session, "--all", "--json"]).worked_quietly();
    assert!(log.contains("is not one of web pages"), "{log}");
    assert_eq!(server.count(), 0);

    let stage = Stage::confined();
    settings(&stage, &[], "[rules]\nallow = ['fetch']\n");
    let model = calling(&stage, &[fetch("http://localhost/"), fetch("http://169.254.169.254/latest/")]);
    stage.run(&["run", "Read it", "--model", &model]).worked_quietly();
    let log = stage.run(&["log", "--all", "--json"]).worked_quietly();
    assert!(log.matches("is not public").count() >= 2, "{log}");
}

#[test]
fn a_wrong_host_in_the_settings_is_refused() {
    let stage = Stage::new();
    let errors = stage.run(&["config", "set", "fetch.private_hosts", "['http://a/b']"]).called_wrongly();
    assert!(errors.contains("is not a host"), "{errors}");
    stage
        .run(&["config", "set", "fetch.private_hosts", "['wiki.example.com', 'localhost:8080']"])
        .worked_quietly();
}
