//! Worker processes of a system, and what they do: finished sessions per second, the time from the enqueuing of a session to its first request,
//! and the statements of workers that have nothing to do.
//!
//! Every system prints the same lines: `ready - TIME` once it works, `enqueued SESSION TIME` with the time before, `first SESSION TIME` at the
//! first request to the model, and `rested SESSION TIME` when the session has its answer. Times are nanoseconds of the machine's clock.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::sleep;
use std::time::{Duration, Instant};

use backstitch_testkit::postgres::{TestServer, schema_of};
use serde_json::{Value, json};

use super::server::statement_counter;
use super::worker::{CONCURRENCY, ENQUEUE, STORE, WORKER};
use super::{add_sessions, percentile};
use crate::agent::Failed;
use crate::aims::{self, Aim};
use crate::alone;
use crate::report::Report;

/// Sessions that are finished.
const SESSIONS: usize = 1_000;
/// Sessions whose latency is measured.
const SAMPLES: usize = 200;
/// Workers that have nothing to do.
const IDLE_WORKERS: usize = 10;
/// Sessions that are paused then.
pub(super) const IDLE_SESSIONS: usize = 10_000;
/// Time for which the statements of idle workers are counted.
const IDLE_TIME: Duration = Duration::from_secs(30);
/// The longest time that a measurement may take.
pub(super) const LONGEST: Duration = Duration::from_secs(300);

/// A system that drives sessions with processes.
pub(super) struct System {
    store: &'static str,
    through: Option<&'static str>,
    /// Starts a process, by its role.
    start: Box<dyn Fn(Role) -> Command>,
    /// SQL that adds as many paused sessions.
    pause: Option<String>,
    /// The aim for its latency. A system without one has no other aims either.
    latency_aim: Option<Aim>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Worker,
    /// A worker that is started on a long queue. A system whose worker waits between two looks at the queue, also while there is work, may
    /// wait less.
    BusyWorker,
    Enqueue,
}

impl System {
    /// Another system on the server. `pause` is SQL that adds paused sessions.
    pub(super) fn new(start: impl Fn(Role) -> Command + 'static, pause: String) -> Self {
        Self { pause: Some(pause), through: Some("direct"), ..Self::of("postgres", start) }
    }

    fn of(store: &'static str, start: impl Fn(Role) -> Command + 'static) -> Self {
        Self { store, through: None, start: Box::new(start), pause: None, latency_aim: None }
    }

    /// Backstitch with a store on a server.
    pub(super) fn on_server(server: &TestServer) -> Self {
        let address = server.address();
        let pause = add_sessions(schema_of(&address), IDLE_SESSIONS, 0, "NULL", "waiting");
        Self {
            latency_aim: Some(aims::HINTED_REQUEST),
            ..Self::new(move |role| own_process(role, &address), pause)
        }
    }

    /// The same through the pooler, where no hint arrives.
    pub(super) fn pooled(server: &TestServer) -> Option<Self> {
        let address = server.pooled_address()?;
        let system = Self::of("postgres", move |role| own_process(role, &address));
        Some(Self { through: Some("pgbouncer"), latency_aim: Some(aims::POLLED_REQUEST), ..system })
    }

    /// Backstitch with a store in a file. Its workers are processes of one machine, and no server counts their statements.
    pub(super) fn in_file(path: &str) -> Self {
        let path = path.to_owned();
        Self::of("sqlite", move |role| own_process(role, &path))
    }

    fn params(&self, mut more: Value) -> Value {
        more["store"] = json!(self.store);
        if let Some(through) = self.through {
            more["through"] = json!(through);
        }
        more
    }
}

/// This program in another role.
fn own_process(role: Role, store: &str) -> Command {
    let program = std::env::current_exe().unwrap_or_default();
    let mut command = Command::new(program);
    let name = if role == Role::Enqueue { ENQUEUE } else { WORKER };
    command.args([alone::FLAG, name]).env(STORE, store);
    command
}

/// Measures all of a system.
pub(super) fn run(report: &mut Report, system: &System, server: Option<&TestServer>) -> Result<(), Failed> {
    finish_sessions(report, system)?;
    wait_for_requests(report, system)?;
    match (server, &system.pause) {
        (Some(server), Some(pause)) => count_statements(report, system, server, pause),
        _ => Ok(()),
    }
}

/// Sessions that are all enqueued before the workers start.
fn finish_sessions(report: &mut Report, system: &System) -> Result<(), Failed> {
    for workers in [1, 2, 4] {
        let mut fleet = Fleet::new(system);
        let mut queue = fleet.start(Role::Enqueue)?;
        fleet.wait("ready", 1)?;
        let began = Instant::now();
        queue.enqueue(SESSIONS)?;
        fleet.wait("enqueued", SESSIONS)?;
        if workers == 1 {
            let rate = SESSIONS as f64 / began.elapsed().as_secs_f64();
            let params = system.params(json!({ "sessions": SESSIONS, "at_a_time": CONCURRENCY }));
            report.value("fleet.enqueued_per_second", params, rate, "sessions/s");
        }
        drop(queue);
        let running = (0..workers).map(|_| fleet.start(Role::BusyWorker)).collect::<Result<Vec<_>, _>>()?;
        fleet.wait("rested", SESSIONS)?;
        let first = fleet.times("first").map(|(_, at)| at).min().unwrap_or_default();
        let last = fleet.times("rested").map(|(_, at)| at).max().unwrap_or_default();
        drop(running);
        let rate = SESSIONS as f64 / (last.saturating_sub(first).max(1) as f64 / 1e9);
        let params = system.params(json!({ "workers": workers, "sessions": SESSIONS }));
        report.value("fleet.finished_per_second", params, rate, "sessions/s");
    }
    Ok(())
}

/// Sessions that are enqueued one by one while a worker waits for them, at times that have nothing to do with its own.
pub(super) fn wait_for_requests(report: &mut Report, system: &System) -> Result<(), Failed> {
    let mut fleet = Fleet::new(system);
    let (mut queue, worker) = (fleet.start(Role::Enqueue)?, fleet.start(Role::Worker)?);
    fleet.wait("ready", 2)?;
    sleep(Duration::from_secs(3));
    for sample in 0..SAMPLES {
        queue.enqueue(1)?;
        sleep(Duration::from_millis(150 + (sample * 97 % 200) as u64));
    }
    fleet.wait("first", SAMPLES)?;
    fleet.wait("enqueued", SAMPLES)?;
    let enqueued: HashMap<&str, u128> = fleet.times("enqueued").collect();
    let since = |(session, at): (&str, u128)| {
        enqueued.get(session).map(|began| at.saturating_sub(*began) as f64 / 1e6)
    };
    let mut times: Vec<f64> = fleet.times("first").filter_map(since).collect();
    drop((queue, worker));
    let params = system.params(json!({ "workers": 1, "samples": times.len() }));
    let half = percentile(&mut times, 0.5);
    match system.latency_aim {
        Some(aim) => aim.judge(report, params.clone(), half),
        None => report.value("fleet.enqueue_to_request_p50", params.clone(), half, "ms"),
    }
    report.value("fleet.enqueue_to_request_p99", params, percentile(&mut times, 0.99), "ms");
    Ok(())
}

/// Workers that have nothing to do.
fn count_statements(
    report: &mut Report,
    system: &System,
    server: &TestServer,
    pause: &str,
) -> Result<(), Failed> {
    server.sql(pause);
    let mut fleet = Fleet::new(system);
    let running = (0..IDLE_WORKERS).map(|_| fleet.start(Role::Worker)).collect::<Result<Vec<_>, _>>()?;
    fleet.wait("ready", IDLE_WORKERS)?;
    sleep(Duration::from_secs(10));
    let (source, sql) = statement_counter(server);
    let count = || server.sql(sql).parse::<i64>();
    let (before, began) = (count()?, Instant::now());
    sleep(IDLE_TIME);
    // The first count is not one of theirs.
    let statements = (count()? - before - 1).max(0);
    let rate = statements as f64 / began.elapsed().as_secs_f64();
    drop(running);
    let params =
        system.params(json!({ "workers": IDLE_WORKERS, "paused": IDLE_SESSIONS, "counted_by": source }));
    match system.latency_aim {
        Some(_) => aims::IDLE_STATEMENTS.judge(report, params, rate),
        None => report.value("fleet.idle_statements", params, rate, "statements/s"),
    }
    Ok(())
}

/// Processes of a system, and the lines that they have printed.
struct Fleet<'a> {
    system: &'a System,
    sender: Sender<Line>,
    receiver: Receiver<Line>,
    lines: Vec<Line>,
}

/// A line of a process.
struct Line {
    word: String,
    session: String,
    at: u128,
}

impl<'a> Fleet<'a> {
    fn new(system: &'a System) -> Self {
        let (sender, receiver) = channel();
        Self { system, sender, receiver, lines: Vec::new() }
    }

    fn start(&self, role: Role) -> Result<Process, Failed> {
        let mut command = (self.system.start)(role);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let input = child.stdin.take();
        if let Some(output) = child.stdout.take() {
            let sender = self.sender.clone();
            std::thread::spawn(move || {
                for line in BufReader::new(output).lines().map_while(Result::ok) {
                    let mut words = line.split(' ').map(str::to_owned);
                    if let (Some(word), Some(session), Some(at)) = (words.next(), words.next(), words.next())
                        && let Ok(at) = at.parse()
                    {
                        let _ = sender.send(Line { word, session, at });
                    }
                }
            });
        }
        Ok(Process { child, input })
    }

    /// Waits until a word was printed so often.
    fn wait(&mut self, word: &str, count: usize) -> Result<(), Failed> {
        let end = Instant::now() + LONGEST;
        let mut seen = self.times(word).count();
        while seen < count {
            let left = end.saturating_duration_since(Instant::now());
            let Ok(line) = self.receiver.recv_timeout(left) else {
                let system = self.system.store;
                return Err(format!("{system}: {seen} of {count} lines `{word}` after {LONGEST:?}").into());
            };
            seen += usize::from(line.word == word);
            self.lines.push(line);
        }
        Ok(())
    }

    /// The sessions and times of a word.
    fn times(&self, word: &str) -> impl Iterator<Item = (&str, u128)> {
        self.lines.iter().filter(move |line| line.word == word).map(|line| (line.session.as_str(), line.at))
    }
}

/// A process. It ends with this value.
struct Process {
    child: Child,
    input: Option<ChildStdin>,
}

impl Process {
    /// Lets the process enqueue sessions.
    fn enqueue(&mut self, count: usize) -> Result<(), Failed> {
        let input = self.input.as_mut().ok_or("the process has no input")?;
        writeln!(input, "{count}")?;
        Ok(input.flush()?)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.input.take());
        for _ in 0..200 {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            sleep(Duration::from_millis(50));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
