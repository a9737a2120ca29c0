//! DBOS on the same server, by its Python package and by its Rust package.
//!
//! The programs are in `bench/dbos`. The first run installs the one package, and builds the program with the other, into the directory of the
//! build; what cannot be had is skipped with a line that says so. A step of DBOS takes the place of an append: one result of the same size, in a
//! transaction of its own. DBOS listens for notifications, so it is not measured through pgbouncer.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};

use backstitch_testkit::postgres::{PORT, TestServer, USER};
use serde_json::{Value, json};

use super::appends::{CONNECTIONS, Workload};
use super::processes::{self, IDLE_SESSIONS, LONGEST, Role, System};
use super::{claims, note};
use crate::agent::Failed;
use crate::peers::install;
use crate::report::Report;

/// The package of Python.
const PACKAGE: &str = "dbos==3.4.0";
/// The directory of the programs.
const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/dbos");
/// Seconds for which steps are counted.
const SECONDS: &str = "4";

/// A program that uses DBOS.
#[derive(Clone)]
struct Peer {
    system: &'static str,
    program: PathBuf,
    /// The program that it runs, if it is an interpreter.
    file: Option<PathBuf>,
    address: String,
    schema: String,
}

pub(super) fn run(server: &TestServer) {
    let place = server.directory.display();
    let schema = |system: &str| format!("{system}_{}", std::process::id());
    eprintln!("fleet: installing {PACKAGE}, unless it is there");
    match install::packages(&[PACKAGE]) {
        Ok(program) => measure(
            server,
            &Peer {
                system: "dbos_python",
                program,
                file: Some(Path::new(SOURCES).join("peer.py")),
                address: format!("postgresql://{USER}@/postgres?host={place}&port={PORT}"),
                schema: schema("dbos_python"),
            },
        ),
        Err(error) => eprintln!("== DBOS for Python is NOT measured: {error}"),
    }
    match build() {
        Ok(program) => measure(
            server,
            &Peer {
                system: "dbos_rust",
                program,
                file: None,
                address: format!("postgres://{USER}@localhost:{PORT}/postgres?host={place}"),
                schema: schema("dbos_rust"),
            },
        ),
        Err(error) => eprintln!("== DBOS for Rust is NOT measured: {error}"),
    }
}

/// Builds the program in Rust unless it is built, and returns it. It is a package of its own, with its own lockfile.
fn build() -> Result<PathBuf, Failed> {
    let directory = install::place()?.join("dbos-rust");
    let manifest = Path::new(SOURCES).join("Cargo.toml");
    eprintln!("fleet: building {} into {}, unless it is built", manifest.display(), directory.display());
    let mut cargo = Command::new("cargo");
    cargo.args(["build", "--quiet", "--release", "--locked", "--manifest-path"]).arg(manifest);
    install::succeed(cargo.arg("--target-dir").arg(&directory))?;
    Ok(directory.join("release/dbos-peer"))
}

fn measure(server: &TestServer, peer: &Peer) {
    let mut report = Report::of(peer.system);
    note(measure_steps(&mut report, peer));
    // A schema of its own, so that no worker below takes anything from the long queue.
    let long = Peer { schema: format!("{}_long", peer.schema), ..peer.clone() };
    note(measure_claims(&mut report, &long, server));
    let started = peer.clone();
    let start = move |role| {
        started.command(&[match role {
            Role::Worker => "worker",
            Role::BusyWorker => "busy",
            Role::Enqueue => "enqueue",
        }])
    };
    let pause = add_workflows(&peer.schema, "sessions", IDLE_SESSIONS, "DELAYED");
    note(processes::run(&mut report, &System::new(start, pause), Some(server)));
}

/// Steps of workflows that run at the same time.
fn measure_steps(report: &mut Report, peer: &Peer) -> Result<(), Failed> {
    let bytes = Workload::new()?.bytes();
    for connections in CONNECTIONS {
        let arguments = ["steps", &connections.to_string(), &bytes.to_string(), SECONDS];
        let found = Answers::start(&mut peer.command(&arguments))?.read()?;
        let params =
            json!({ "store": "postgres", "through": "direct", "connections": connections, "bytes": bytes });
        report.value("fleet.appends_per_second", params, number(&found, "rate"), "appends/s");
    }
    Ok(())
}

/// Claims from a queue that is as long.
fn measure_claims(report: &mut Report, peer: &Peer, server: &TestServer) -> Result<(), Failed> {
    let mut answers = Answers::start(&mut peer.command(&["claims"]))?;
    // Its tables exist then.
    answers.read()?;
    for status in ["ENQUEUED", "DELAYED"] {
        server.sql(&add_workflows(&peer.schema, "long", claims::QUEUED, status));
    }
    server.sql("ANALYZE");
    answers.proceed()?;
    let found = answers.read()?;
    let params = json!({ "store": "postgres", "workers": found["workers"], "batch": found["batch"],
        "claimed": found["claimed"], "queued": claims::QUEUED, "timers": claims::QUEUED });
    report.value("fleet.claims_per_second", params.clone(), number(&found, "rate"), "sessions/s");
    report.precise("fleet.claim_p99", params.clone(), number(&found, "p99"), "ms");
    report.precise("fleet.claim_p50", params, number(&found, "p50"), "ms");
    Ok(())
}

fn number(found: &Value, name: &str) -> f64 {
    found[name].as_f64().unwrap_or(f64::NAN)
}

/// SQL that adds workflows to a queue. Those that are delayed are due in a day.
fn add_workflows(schema: &str, queue: &str, count: usize, status: &str) -> String {
    let due = if status == "DELAYED" {
        "(extract(epoch FROM now() + interval '1 day') * 1000)::bigint"
    } else {
        "NULL::bigint"
    };
    format!(
        "INSERT INTO {schema}.workflow_status (workflow_uuid, status, name, queue_name, priority, delay_until_epoch_ms)
        SELECT gen_random_uuid()::text, '{status}', 'session', '{queue}', 0, {due} FROM generate_series(1, {count})"
    )
}

impl Peer {
    fn command(&self, role: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.file).args([&self.address, &self.schema]).args(role);
        command
    }
}

/// A process that prints lines of JSON. It ends with this value.
struct Answers {
    child: Child,
    lines: Receiver<Value>,
}

impl Answers {
    fn start(command: &mut Command) -> Result<Self, Failed> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let (sender, lines) = channel();
        if let Some(output) = child.stdout.take() {
            std::thread::spawn(move || {
                let lines = BufReader::new(output).lines().map_while(Result::ok);
                for answer in lines.filter_map(|line| serde_json::from_str(&line).ok()) {
                    let _ = sender.send(answer);
                }
            });
        }
        Ok(Self { child, lines })
    }

    fn read(&mut self) -> Result<Value, Failed> {
        Ok(self.lines.recv_timeout(LONGEST).map_err(|_| "a program of DBOS printed no result")?)
    }

    /// Lets the process continue.
    fn proceed(&mut self) -> Result<(), Failed> {
        let input = self.child.stdin.as_mut().ok_or("the process has no input")?;
        writeln!(input)?;
        Ok(input.flush()?)
    }
}

impl Drop for Answers {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
