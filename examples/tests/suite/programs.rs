//! The example programs `coder`, `workflow` and `service`, run and killed as by their users, and the figures of `records`.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

const WORKFLOW: &str = env!("CARGO_BIN_EXE_workflow");

fn printed(output: &Output) -> String {
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    format!("{out}{err}")
}

#[test]
fn the_coder_changes_files_and_state_and_returns_a_typed_answer() {
    let place = TempDir::new().unwrap();
    let project = place.path().join("project");
    std::fs::create_dir(&project).unwrap();
    std::fs::write(project.join("notes.txt"), "Coat.\nTODO: close the seam\n").unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_coder")).arg(&project).output().unwrap();
    let text = printed(&output);
    assert!(output.status.success(), "{text}");
    assert_eq!(std::fs::read_to_string(project.join("notes.txt")).unwrap(), "Coat.\nThe seam is closed.\n");
    assert!(text.contains("Closed the seam. (notes.txt)"), "{text}");
    assert!(text.contains("notes.txt:2: close the seam"), "{text}");
}

/// A longer prompt or description changes the figures a little, which is not worth a change of the page.
#[test]
fn the_page_has_the_figures_of_the_records() {
    let output = Command::new(env!("CARGO_BIN_EXE_records")).output().unwrap();
    let table = printed(&output);
    assert!(output.status.success(), "{table}");
    // The columns: the agent, the compression, requests, bytes, tokens.
    let measured = |agent: &str, compression: &str| -> f64 {
        let is = |line: &&str| {
            line.get(..22).map(str::trim) == Some(agent)
                && line.get(22..45).map(str::trim) == Some(compression)
        };
        let line = table.lines().find(is).unwrap_or_else(|| panic!("{agent}, {compression}: {table}"));
        line[45..].split_whitespace().nth(2).unwrap().parse().unwrap()
    };
    let page = include_str!("../../../bench/README.md");
    for (words, agent, compression) in [
        (" tokens by tool calls", "calls tools, 15 pages", "none"),
        (" with old results elided", "calls tools, 15 pages", "elide, last 1"),
        (" by one program", "one program", "none"),
    ] {
        let before = page.split_once(words).unwrap_or_else(|| panic!("the page has no{words}")).0;
        let said: f64 = before.rsplit(' ').next().unwrap().replace(',', "").parse().unwrap();
        let measured = measured(agent, compression);
        assert!((said / measured - 1.0).abs() < 0.05, "the page says {said}{words}, and it is {measured}");
    }
}

fn workflow(command: &str, store: &Path) -> Output {
    Command::new(WORKFLOW).arg(command).arg(store).output().unwrap()
}

/// Starts the workflow, and kills it once it has printed a line with these words. Returns whether it printed
/// them.
fn killed_at(words: &str, command: &str, store: &Path) -> bool {
    let mut child = Command::new(WORKFLOW).arg(command).arg(store).stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let reached = lines.map_while(Result::ok).any(|line| line.contains(words));
    child.kill().unwrap();
    child.wait().unwrap();
    reached
}

#[test]
fn the_workflow_is_killed_resumed_and_approved_and_publishes_once() {
    for words in ["session ", "calls research", "looking up seams", "looking up threads"] {
        let place = TempDir::new().unwrap();
        let store = place.path().join("store/store.db");
        assert!(killed_at(words, "start", &store), "{words}");
        let resumed = workflow("resume", &store);
        assert_eq!(resumed.status.code(), Some(3), "{words}: {}", printed(&resumed));
        // Resuming does not decide.
        assert_eq!(workflow("resume", &store).status.code(), Some(3), "{words}");
        let board = store.with_extension("board");
        assert!(!board.exists(), "{words}: nothing is published before the approval");
        let approved = workflow("approve", &store);
        assert!(approved.status.success(), "{words}: {}", printed(&approved));
        let done = workflow("resume", &store);
        assert!(
            done.status.success() && printed(&done).contains("It is out."),
            "{words}: {}",
            printed(&done)
        );
        let published = std::fs::read_to_string(&board).unwrap();
        assert_eq!(published.lines().count(), 1, "{words}: {published}");
    }
}

#[test]
fn a_denied_call_does_not_run() {
    let place = TempDir::new().unwrap();
    let store = place.path().join("store/store.db");
    assert_eq!(workflow("start", &store).status.code(), Some(3));
    assert!(workflow("deny", &store).status.success());
    let done = workflow("resume", &store);
    assert!(done.status.success(), "{}", printed(&done));
    assert!(!store.with_extension("board").exists());
}

/// Time without progress after which a service counts as stuck.
const PATIENCE: Duration = Duration::from_secs(300);

/// The replies of the model of a service.
const SCRIPT: &str = include_str!("../../service/script.toml");

/// The same, but for the last reply, for which a service waits until it is killed or stopped.
fn endless_script() -> String {
    let (before, after) = SCRIPT.rsplit_once("delay_ms = 150").unwrap();
    format!("{before}delay_ms = 600000{after}")
}

/// The running service, killed when it is dropped.
struct Service {
    child: Child,
    address: String,
    resumed: usize,
}

impl Service {
    /// Starts a service in a directory, with the replies of a script.
    fn start(place: &Path, script: &str) -> Self {
        let path = place.join("script.toml");
        std::fs::write(&path, script).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_service"));
        command.arg(place.join("store/store.db")).arg(format!("scripted:{}", path.display()));
        let child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut service = Self { child, address: String::new(), resumed: 0 };
        for line in BufReader::new(service.child.stdout.take().unwrap()).lines() {
            let line = line.unwrap();
            service.resumed += usize::from(line.starts_with("resumed "));
            if let Some(address) = line.strip_prefix("listening on ") {
                service.address = address.to_owned();
                break;
            }
        }
        assert!(!service.address.is_empty(), "the service did not listen");
        service
    }

    fn connect(&self, method: &str, path: &str, body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let length = body.len();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nhost: test\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
        )
        .unwrap();
        stream
    }

    fn get(&self, path: &str) -> Value {
        let mut text = String::new();
        self.connect("GET", path, "").read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200"), "{text}");
        serde_json::from_str(body).unwrap()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn sixty_streaming_sessions_survive_a_kill_of_their_service() {
    const SESSIONS: usize = 60;
    let place = TempDir::new().unwrap();
    let service = Service::start(place.path(), &endless_script());
    let ids: Vec<String> = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..SESSIONS)
            .map(|number| {
                let service = &service;
                scope.spawn(move || {
                    let stream = service.connect("POST", "/sessions", &format!("Mission {number}"));
                    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
                    assert!(lines.any(|line| line == "event: started"), "{number}");
                    let id = lines.next().unwrap();
                    let id = id.strip_prefix("data: ").unwrap().to_owned();
                    // Records stream while the session runs.
                    assert!(lines.any(|line| line == "event: record"), "{number}");
                    id
                })
            })
            .collect();
        clients.into_iter().map(|client| client.join().unwrap()).collect()
    });
    let before = service.get("/sessions");
    assert_eq!(before.as_array().unwrap().len(), SESSIONS);
    drop(service);

    let service = Service::start(place.path(), SCRIPT);
    assert!(service.resumed > 0, "the service was killed before its sessions had ended");
    for id in &ids {
        let until = Instant::now() + PATIENCE;
        let answer = loop {
            let answer = service.get(&format!("/sessions/{id}"));
            if answer["status"] == "idle" {
                break answer;
            }
            assert!(Instant::now() < until, "{answer}");
            std::thread::sleep(Duration::from_millis(20));
        };
        assert_eq!(answer["answer"], "Six words, of which four come first.", "{answer}");
    }
}

#[test]
fn a_service_that_is_stopped_and_started_again_resumes_its_sessions() {
    let place = TempDir::new().unwrap();
    let mut service = Service::start(place.path(), &endless_script());
    for number in 0..10 {
        let stream = service.connect("POST", "/sessions", &format!("Mission {number}"));
        let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
        assert!(lines.any(|line| line == "event: record"), "{number}");
    }
    let pid = rustix::process::Pid::from_child(&service.child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    assert!(service.child.wait().unwrap().success());
    assert!(
        Service::start(place.path(), SCRIPT).resumed > 0,
        "sessions that the shutdown paused are resumed"
    );
}
