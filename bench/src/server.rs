//! The server with the inspector (`backstitch ui`) on a session of 10,000 calls: how long answers of its API take, how many bytes the first page
//! of the inspector fetches, and how many events reach 100 readers.
//!
//! The server is a process of the command, which has to be built with the same profile first; a client in this process reads bytes by itself.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::Child;
use std::time::Instant;

use backstitch_core::id::SessionId;
use backstitch_core::journal::{Batch, Note, Position};
use backstitch_core::ports::Store as _;
use backstitch_core::time::Clock as _;
use backstitch_runtime::SystemClock;
use backstitch_store::SqliteStore;
use backstitch_testkit::api::ApiClient;
use backstitch_testkit::block_on;
use serde_json::json;

use crate::command::{program, started};
use crate::measure::{Samples, once};
use crate::report::Report;
use crate::store::{claim, long_session, temporary};

/// Number of calls of the session.
const CALLS: usize = 10_000;

/// How often each route is read.
const ROUNDS: usize = 15;

/// Number of readers of events.
const READERS: usize = 100;

/// Number of events that each of them reads.
const EVENTS: usize = 1_000;

pub(crate) fn run(report: &mut Report) {
    let Some(program) = program("server") else { return };
    let directory = temporary();
    let session = long_session(directory.path(), CALLS);
    let store = directory.path().join("store.db");
    let Some(served) = Served::start(&program, &store) else {
        eprintln!("the group `server` is skipped: `backstitch ui` does not start");
        return;
    };
    latency(report, &served.client, session);
    first_paint(report, &served.client, session);
    old_events(report, &served.client, session);
    new_events(report, &served.client, &store, session);
}

/// A server that runs.
struct Served {
    child: Child,
    client: ApiClient,
}

impl Served {
    fn start(program: &Path, store: &Path) -> Option<Self> {
        let mut child = started(program, store, &["ui", "--no-open", "--listen", "0"])?;
        let mut link = String::new();
        BufReader::new(child.stdout.take()?).read_line(&mut link).ok()?;
        if !link.contains("/#token=") {
            let _ = child.kill();
            let _ = child.wait();
            return None;
        }
        Some(Self { child, client: ApiClient::of_link(&link) })
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Measures answers about the session. The first one loads its view, which the server keeps.
fn latency(report: &mut Report, client: &ApiClient, session: SessionId) {
    let base = format!("/api/v1/sessions/{session}");
    let (_, first) = once(|| client.get(&base));
    let params = json!({ "route": "overview", "calls": CALLS, "kept": false });
    report.value("server.latency", params, first.wall.as_nanos() as f64, "ns");
    for (route, path) in [
        ("overview", ""),
        ("records", "/records?limit=100&from=20000"),
        ("last records", "/records?limit=100&last=true"),
        ("transcript", "/transcript?limit=60&last=true"),
        ("calls", "/calls?limit=1000&from=5000"),
        ("state", "/state"),
        ("state at a point", "/state?at=20000"),
        ("graph", "/graph"),
        ("sessions", "/../../sessions?limit=100"),
    ] {
        let path = match path.strip_prefix("/../../") {
            Some(path) => format!("/api/v1/{path}"),
            None => format!("{base}{path}"),
        };
        let mut samples = Samples::default();
        let mut bytes = 0;
        for _ in 0..ROUNDS {
            let (answer, elapsed) = once(|| read(client, &path));
            bytes = answer.len();
            samples.add(elapsed);
        }
        let timing = samples.timing();
        let params = json!({
            "route": route, "calls": CALLS, "kept": true, "bytes": bytes, "minimum": timing.minimum as u64,
            "samples": timing.samples,
        });
        report.value("server.latency", params, timing.median, "ns");
    }
}

/// Reads the whole answer to a request, which has to work.
fn read(client: &ApiClient, path: &str) -> Vec<u8> {
    let answer = client.send("GET", path, &[], b"");
    assert_eq!(answer.status, 200, "GET {path}");
    answer.bytes()
}

/// Adds up what a browser fetches until it shows something: the page with its modules, and the first answers.
fn first_paint(report: &mut Report, client: &ApiClient, session: SessionId) {
    let base = format!("/api/v1/sessions/{session}");
    let of_session = ["", "/records?all=true&last=true&limit=200", "/transcript?limit=60&last=true"]
        .map(|path| format!("{base}{path}"));
    let of_list =
        ["/api/v1/server", "/api/v1/sessions?limit=100", "/api/v1/approvals?limit=20"].map(str::to_owned);
    let (files, page) = page_bytes(client);
    for (name, answers) in [("sessions", &of_list), ("session", &of_session)] {
        let answered: usize = answers.iter().map(|path| read(client, path).len()).sum();
        let params = json!({ "page": name, "calls": CALLS, "files": files, "files_bytes": page, "api_bytes": answered });
        report.value("server.first_paint", params, (page + answered) as f64, "bytes");
    }
}

/// Fetches the page and everything that it names, and returns the number of files and bytes.
fn page_bytes(client: &ApiClient) -> (usize, usize) {
    let (mut wanted, mut seen, mut bytes) = (vec!["/".to_owned()], BTreeSet::new(), 0);
    while let Some(path) = wanted.pop() {
        if !seen.insert(path.clone()) {
            continue;
        }
        let answer = client.send("GET", &path, &[], b"");
        if answer.status != 200 {
            seen.remove(&path);
            continue;
        }
        let text = answer.text();
        bytes += text.len();
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        for before in ["src=\"", "href=\"", "from \"", "import(\"", "import \""] {
            for named in text.split(before).skip(1).filter_map(|rest| rest.split('"').next()) {
                let is_file = [".js", ".css", ".svg"].iter().any(|end| named.ends_with(end));
                if is_file && !named.contains(':') {
                    wanted.push(resolve(folder, named));
                }
            }
        }
    }
    (seen.len(), bytes)
}

/// Resolves a path that a file in a folder names.
fn resolve(folder: &str, named: &str) -> String {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in named.split('/') {
        match part {
            "." | "" => {}
            ".." => _ = parts.pop(),
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

/// Measures readers that catch up with a long session: each reads old records from the store.
fn old_events(report: &mut Report, client: &ApiClient, session: SessionId) {
    let path = format!("/api/v1/sessions/{session}/events");
    let (_, elapsed) = once(|| {
        std::thread::scope(|scope| {
            for _ in 0..READERS {
                scope.spawn(|| client.events(&path, None).take(EVENTS).count());
            }
        });
    });
    rate(report, "old", elapsed.wall.as_secs_f64());
}

/// Measures readers that follow a session while another process writes it: one reader of the store serves all of them.
fn new_events(report: &mut Report, client: &ApiClient, store: &Path, session: SessionId) {
    let path = format!("/api/v1/sessions/{session}/events?from=head");
    let writer = SqliteStore::open(store).expect("it was created");
    let claim = claim(&writer, session);
    let mut streams: Vec<_> = (0..READERS).map(|_| client.events(&path, None)).collect();
    // Each begins with an event of its own.
    streams.iter_mut().for_each(|stream| _ = stream.next());
    let mut next: Position = block_on(writer.head(session)).expect("it can be read");
    let started = Instant::now();
    std::thread::scope(|scope| {
        for stream in &mut streams {
            scope.spawn(move || stream.take(EVENTS).count());
        }
        for number in 0..EVENTS {
            let batch = Batch::at(SystemClock::new().now()).with(Note::new("bench", number.to_string()));
            next = block_on(writer.append(session, next, claim.fence, batch)).expect("it fits");
        }
    });
    rate(report, "new", started.elapsed().as_secs_f64());
    block_on(writer.release(claim)).expect("it is held");
}

fn rate(report: &mut Report, records: &str, seconds: f64) {
    let params = json!({ "records": records, "readers": READERS, "events_each": EVENTS, "calls": CALLS });
    report.value("server.events", params, (READERS * EVENTS) as f64 / seconds, "events/s");
}
