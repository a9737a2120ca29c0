//! The group `peers`: one agent job on Backstitch, and on other systems that make programs durable.
//!
//! The job has 20 turns of a scripted model with one call each; every step is stored before the next one. Each system does it in a
//! process of its own, which this one starts, feeds with the names of jobs, and kills in the middle of a call. So the interpreter, the
//! client and a server count, as they do for users. Packages are installed below `target`; a system that cannot be installed has no
//! rows, and the reason is printed.

mod backstitch;
pub(crate) mod install;
mod worker;

use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use serde_json::json;

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

pub(crate) fn run(report: &mut Report) {
    let rows = |name: &str, measured: Result<(), Failed>| {
        if let Err(error) = measured {
            eprintln!("peers: no rows for {name}: {error}");
        }
    };
    rows("backstitch", of_backstitch(report));
    for peer in &PEERS {
        rows(peer.name, of_peer(peer));
    }
}

fn of_backstitch(report: &mut Report) -> Result<(), Failed> {
    let (place, program) = (temporary(), std::env::current_exe()?);
    let start = |mode: &str| {
        let mut command = Command::new(&program);
        command.args([FLAG, NAME]).env(DIRECTORY, place.path()).env(MODE, mode);
        command
    };
    measure(report, place.path(), None, start)
}

fn of_peer(peer: &Peer) -> Result<(), Failed> {
    let (place, python) = (temporary(), install::packages(peer.packages)?);
    let program = place.path().join(format!("{}_job.py", peer.name));
    std::fs::write(&program, peer.program)?;
    std::fs::write(place.path().join("job.py"), include_str!("job.py"))?;
    let server = match peer.name {
        "restate" => Some(install::server(&place.path().join("store"))?),
        _ => None,
    };
    let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string();
    let start = |mode: &str| {
        let mut command = Command::new(&python);
        command.arg(&program).arg(place.path()).arg(mode).env("ADDRESS", &address);
        command
    };
    measure(&mut Report::of(peer.name), place.path(), server.as_ref().map(Worker::id), start)
}

/// Measures one system. `start` returns the command that does jobs in a mode, and `server` is the process that it needs.
fn measure(
    report: &mut Report,
    place: &Path,
    server: Option<u32>,
    start: impl Fn(&str) -> Command,
) -> Result<(), Failed> {
    let store = place.join("store");
    std::fs::create_dir_all(&store)?;
    let params = || json!({ "turns": TURNS, "jobs": JOBS });
    let begin = |mode: &str, job: &str| -> Result<(Worker, Instant), Failed> {
        let clock = Instant::now();
        let mut worker = Worker::start(start(mode))?;
        worker.send(job)?;
        worker.wait_for("call")?;
        Ok((worker, clock))
    };
    let (mut first, clock) = begin("run", "first")?;
    report.value("peers.start", params(), clock.elapsed().as_nanos() as f64, "ns");
    first.wait_for("done")?;
    first.end()?;

    let empty = size_of(&store);
    let (mut worker, _) = begin("run", "warm-up")?;
    worker.wait_for("done")?;
    let processes: Vec<u32> = server.into_iter().chain([worker.id()]).collect();
    let before = Usage::of(&processes);
    let mut walls = Vec::new();
    for number in 0..JOBS {
        let clock = Instant::now();
        worker.send(&format!("job-{number}"))?;
        worker.wait_for("done")?;
        walls.push(clock.elapsed().as_secs_f64());
    }
    let used = Usage::of(&processes).since(&before);
    worker.end()?;
    let turns = (JOBS * TURNS) as f64;
    let stored = size_of(&store).saturating_sub(empty) as f64 / ((JOBS + 1) * TURNS) as f64;
    report.value("peers.speed", params(), TURNS as f64 / median(&mut walls), "turns/s");
    report.value("peers.turn_cpu", params(), used.processor.as_nanos() as f64 / turns, "ns");
    report.value("peers.written", params(), used.written as f64 / turns, "bytes/turn");
    report.value("peers.stored", params(), stored, "bytes/turn");

    let (mut hanging, _) = begin("hang", "killed")?;
    hanging.wait_for("hangs")?;
    drop(hanging);
    let (mut resumed, clock) = begin("resume", "killed")?;
    let recovered = clock.elapsed();
    resumed.wait_for("done")?;
    resumed.end()?;
    let calls = std::fs::read_to_string(place.join("calls"))?;
    let done = calls.lines().filter(|line| line.starts_with("hang ") || line.starts_with("resume ")).count();
    let params = json!({ "turns": TURNS, "killed_at": TURNS / 2, "calls_again": done.saturating_sub(TURNS) });
    report.value("peers.recover", params, recovered.as_nanos() as f64, "ns");
    Ok(())
}
