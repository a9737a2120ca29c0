//! The group `peers`: one agent job on Backstitch, and on other systems that make programs durable.
//!
//! The job has 20 turns of a scripted model with one call each; every step is stored before the next one. Each system does it in a
//! process of its own, which this one starts, feeds with the names of jobs, and kills in the middle of a call. So the interpreter, the
//! client and a server count, as they do for users. The systems take turns, a job each, so that a disturbance affects all of them.
//! Packages are installed below `target`; a system that cannot be installed has no rows, and the reason is printed.

mod backstitch;
pub(crate) mod install;
mod worker;

use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::agent::Failed;
use crate::alone::{Alone, FLAG};
use crate::report::Report;
use crate::store::temporary;
use worker::{Usage, Worker, median, size_of};

pub(crate) const GROUP: &str = "peers";

/// Turns of a job.
const TURNS: usize = 20;

/// Measured jobs of each system.
const JOBS: usize = 10;

/// Variables for the process that does the job on Backstitch.
const DIRECTORY: &str = "BACKSTITCH_BENCH_DIRECTORY";
const MODE: &str = "BACKSTITCH_BENCH_MODE";

const NAME: &str = "peers.backstitch";

pub(crate) const ALONE: &[Alone] = &[(NAME, backstitch::run)];

/// A system with packages for Python, and the program that does the job on it.
struct Peer {
    name: &'static str,
    packages: &'static [&'static str],
    program: &'static str,
}

const PEERS: [Peer; 3] = [
    Peer {
        name: "langgraph",
        packages: &["langgraph==1.2.22", "langgraph-checkpoint-sqlite==3.1.2"],
        program: include_str!("langgraph_job.py"),
    },
    Peer { name: "dbos", packages: &["dbos==3.4.0"], program: include_str!("dbos_job.py") },
    Peer {
        name: "restate",
        packages: &["restate_sdk==1.2.0", "hypercorn==0.18.0"],
        program: include_str!("restate_job.py"),
    },
];

pub(crate) fn run(_: &mut Report) {
    let begun = [("backstitch", Subject::of_backstitch())].into_iter();
    let begun = begun.chain(PEERS.iter().map(|peer| (peer.name, Subject::of_peer(peer))));
    let subjects = begun.filter_map(|(name, subject)| keep(name, subject));
    let mut all: Vec<Measurement> =
        subjects.filter_map(|subject| keep(subject.name, Measurement::begin(subject))).collect();
    for number in 0..JOBS {
        all.retain_mut(|one| keep(one.subject.name, one.run_job(&format!("job-{number}"))).is_some());
    }
    for one in all {
        keep(one.subject.name, one.end());
    }
}

/// Prints why a system has no further rows.
fn keep<T>(name: &str, measured: Result<T, Failed>) -> Option<T> {
    measured.inspect_err(|error| eprintln!("peers: no rows for {name}: {error}")).ok()
}

fn params() -> Value {
    json!({ "turns": TURNS, "jobs": JOBS })
}

/// Makes the command of a role in a directory.
type Start = dyn Fn(&Path, &str) -> Command;

/// A system that is ready for jobs.
struct Subject {
    name: &'static str,
    /// Returns the command that does jobs in a mode, in a directory.
    start: Box<Start>,
    /// The server that it needs.
    server: Option<Worker>,
    place: TempDir,
}

impl Subject {
    fn of_backstitch() -> Result<Self, Failed> {
        let program = std::env::current_exe()?;
        let start = move |place: &Path, mode: &str| {
            let mut command = Command::new(&program);
            command.args([FLAG, NAME]).env(DIRECTORY, place).env(MODE, mode);
            command
        };
        Ok(Self { name: "backstitch", start: Box::new(start), server: None, place: temporary() })
    }

    fn of_peer(peer: &Peer) -> Result<Self, Failed> {
        let (place, python) = (temporary(), install::packages(peer.packages)?);
        let program = place.path().join(format!("{}_job.py", peer.name));
        std::fs::write(&program, peer.program)?;
        std::fs::write(place.path().join("job.py"), include_str!("job.py"))?;
        let server = match peer.name {
            "restate" => Some(install::server(&place.path().join("store"))?),
            _ => None,
        };
        let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string();
        let start = move |place: &Path, mode: &str| {
            let mut command = Command::new(&python);
            command.arg(&program).arg(place).arg(mode).env("ADDRESS", &address);
            command
        };
        Ok(Self { name: peer.name, start: Box::new(start), server, place })
    }

    /// Starts a process with its first job, and returns the time until that makes its first call.
    fn begin(&self, mode: &str, job: &str) -> Result<(Worker, Duration), Failed> {
        let clock = Instant::now();
        let mut worker = Worker::start((self.start)(self.place.path(), mode))?;
        worker.send(job)?;
        worker.wait_for("call")?;
        Ok((worker, clock.elapsed()))
    }

    fn store_size(&self) -> u64 {
        size_of(&self.place.path().join("store"))
    }
}

/// A system in the middle of its measurement.
struct Measurement {
    subject: Subject,
    report: Report,
    worker: Worker,
    /// The size of its store before the jobs.
    before: u64,
    walls: Vec<f64>,
    used: Usage,
}

impl Measurement {
    /// Measures the start, and does a first job in the process of the jobs to come.
    fn begin(subject: Subject) -> Result<Self, Failed> {
        std::fs::create_dir_all(subject.place.path().join("store"))?;
        let mut report = Report::of(subject.name);
        let (mut first, started) = subject.begin("run", "first")?;
        first.wait_for("done")?;
        first.end()?;
        report.value("peers.start", params(), started.as_nanos() as f64, "ns");
        let before = subject.store_size();
        let (mut worker, _) = subject.begin("run", "warm-up")?;
        worker.wait_for("done")?;
        Ok(Self { subject, report, worker, before, walls: Vec::new(), used: Usage::default() })
    }

    fn run_job(&mut self, name: &str) -> Result<(), Failed> {
        let server = self.subject.server.as_ref().map(Worker::id);
        let processes: Vec<u32> = server.into_iter().chain([self.worker.id()]).collect();
        let (before, clock) = (Usage::of(&processes), Instant::now());
        self.worker.send(name)?;
        self.worker.wait_for("done")?;
        self.walls.push(clock.elapsed().as_secs_f64());
        self.used.add(&Usage::of(&processes).since(&before));
        Ok(())
    }

    /// Prints the rows of the jobs, and measures a recovery.
    fn end(self) -> Result<(), Failed> {
        let Self { subject, mut report, worker, before, mut walls, used } = self;
        worker.end()?;
        let turns = (JOBS * TURNS) as f64;
        let stored = subject.store_size().saturating_sub(before) as f64 / ((JOBS + 1) * TURNS) as f64;
        report.value("peers.speed", params(), TURNS as f64 / median(&mut walls), "turns/s");
        report.value("peers.turn_cpu", params(), used.processor.as_nanos() as f64 / turns, "ns");
        report.value("peers.written", params(), used.written as f64 / turns, "bytes/turn");
        report.value("peers.stored", params(), stored, "bytes/turn");

        let (mut hanging, _) = subject.begin("hang", "killed")?;
        hanging.wait_for("hangs")?;
        drop(hanging);
        let (mut resumed, recovered) = subject.begin("resume", "killed")?;
        resumed.wait_for("done")?;
        resumed.end()?;
        let calls = std::fs::read_to_string(subject.place.path().join("calls"))?;
        let done =
            calls.lines().filter(|line| line.starts_with("hang ") || line.starts_with("resume ")).count();
        let params =
            json!({ "turns": TURNS, "killed_at": TURNS / 2, "calls_again": done.saturating_sub(TURNS) });
        report.value("peers.recover", params, recovered.as_nanos() as f64, "ns");
        Ok(())
    }
}
