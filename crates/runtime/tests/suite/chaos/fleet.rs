//! The worker processes: children that run the test binary again.

use std::fs::File;
use std::io::Write as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use backstitch_core::crash::at_every_point;
use backstitch_runtime::{Backoff, Worker, WorkerOptions};
use rustix::process::{Pid, Signal, getpid, kill_process};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::agents;
use super::place::{LEASE, Place, WORKERS};

const ROOT: &str = "BACKSTITCH_CHAOS_ROOT";
const PROCESS: &str = "BACKSTITCH_CHAOS_PROCESS";
const ADDRESS: &str = "BACKSTITCH_CHAOS_STORE";

/// The points where a process can be stopped or blocked: before the last check of its lease, and right before an effect outside.
pub(crate) const HALTS: [&str; 2] = ["call.after_intent", "call.in_handler"];

/// The workers, which can be replaced.
#[derive(Clone)]
pub(crate) struct Fleet {
    place: Arc<FleetPlace>,
    workers: Arc<Vec<Mutex<Child>>>,
}

struct FleetPlace {
    root: PathBuf,
    addresses: Vec<String>,
}

impl Fleet {
    pub(crate) fn start(place: &Place, workers: usize) -> Self {
        let addresses = (0..WORKERS).map(|worker| place.address(worker).to_owned()).collect();
        let place = Arc::new(FleetPlace { root: place.root.clone(), addresses });
        let workers = (0..workers).map(|worker| Mutex::new(place.spawn(worker, &[]))).collect();
        Self { place, workers: Arc::new(workers) }
    }

    /// The process of a worker.
    pub(crate) fn pid(&self, worker: usize) -> u32 {
        self.workers[worker].lock().unwrap().id()
    }

    /// Kills a worker, and starts another one in its place, with these variables.
    pub(crate) fn replace(&self, worker: usize, variables: &[(&str, String)]) {
        let mut child = self.workers[worker].lock().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        *child = self.place.spawn(worker, variables);
    }

    /// Lets a worker finish what it drives, and starts another one in its place, unless another fault does.
    pub(crate) fn upgrade(&self, worker: usize) {
        let old = {
            let child = self.workers[worker].lock().unwrap();
            kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
            child.id()
        };
        loop {
            // The lock is free in between: the worker may have to be continued first.
            let mut child = self.workers[worker].lock().unwrap();
            if child.id() != old {
                return;
            }
            if let Some(status) = child.try_wait().unwrap() {
                // A process that has not begun yet just ends.
                let is_drained = status.success() || status.signal() == Some(Signal::TERM.as_raw());
                assert!(is_drained, "worker {worker}: {status}");
                *child = self.place.spawn(worker, &[]);
                return;
            }
            drop(child);
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub(crate) fn send(&self, worker: usize, signal: Signal) {
        let child = self.workers[worker].lock().unwrap();
        kill_process(Pid::from_child(&child), signal).unwrap();
    }

    /// Kills all workers.
    pub(crate) fn kill(&self) {
        for child in self.workers.iter() {
            let _ = child.lock().map(|mut child| child.kill());
        }
    }

    /// Lets all workers finish what they drive.
    pub(crate) fn drain(&self) {
        std::fs::write(self.place.root.join("stop"), "").unwrap();
        for (worker, child) in self.workers.iter().enumerate() {
            let status = child.lock().unwrap().wait().unwrap();
            let log = || std::fs::read_to_string(self.place.root.join(format!("log.{worker}")));
            assert!(status.success(), "worker {worker}: {status}\n{}", log().unwrap_or_default());
        }
    }
}

impl FleetPlace {
    fn spawn(&self, worker: usize, variables: &[(&str, String)]) -> Child {
        let log =
            File::options().append(true).create(true).open(self.root.join(format!("log.{worker}"))).unwrap();
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "chaos::fleet::works", "--ignored", "--nocapture", "--test-threads=1"]);
        command.env(ROOT, &self.root).env(PROCESS, worker.to_string());
        command.env(ADDRESS, &self.addresses[worker]);
        command.envs(variables.iter().map(|(name, value)| (*name, value)));
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        command.spawn().unwrap()
    }
}

/// Not a test: the entry point of the workers.
#[test]
#[ignore = "started by other tests"]
fn works() {
    let Some(root) = std::env::var_os(ROOT).map(PathBuf::from) else { return };
    let process: usize = std::env::var(PROCESS).unwrap().parse().unwrap();
    let place = Place::existing(root.clone(), process, std::env::var(ADDRESS).unwrap());
    SELF.set((root.clone(), process)).unwrap();
    at_every_point(halt_if_asked);
    let is_over = {
        let root = root.clone();
        move || root.join("stop").exists() || !root.exists()
    };
    let opened = loop {
        match place.open(process) {
            Ok(opened) => break opened,
            // The server may just be away.
            Err(_) if is_over() => return,
            Err(_) => std::thread::sleep(Duration::from_millis(100)),
        }
    };
    let runtime = opened.runtime(&place, process).with_agents(Arc::new(agents::registry(&place)));
    let retries =
        Backoff { retries: 10_000, first: Duration::from_millis(50), longest: Duration::from_millis(500) };
    let poll = Duration::from_millis(150);
    let options = WorkerOptions { concurrency: 4, poll, retries, grace: Duration::from_secs(20) };
    let events = File::options().append(true).create(true).open(root.join(format!("events.{process}")));
    let events = Mutex::new(events.unwrap());
    let worker = Worker::new(runtime).with_options(options).with_report(move |event| {
        let _ = writeln!(events.lock().unwrap(), "{event:?}");
    });
    let tasks = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    tasks.block_on(async move {
        let stop = CancellationToken::new();
        let stopping = stop.clone();
        let mut terminated = signal(SignalKind::terminate()).unwrap();
        tokio::spawn(async move {
            let pause = Duration::from_millis(50);
            while !is_over() && tokio::time::timeout(pause, terminated.recv()).await.is_err() {}
            stopping.cancel();
        });
        worker.run(stop).await.unwrap();
    });
}

/// The place and the number of this process.
static SELF: OnceLock<(PathBuf, usize)> = OnceLock::new();

/// Stops this process, or blocks the thread for two leases, if the test asks for it at this point.
fn halt_if_asked(point: &'static str) {
    let Some((root, process)) = SELF.get() else { return };
    if !HALTS.contains(&point) {
        return;
    }
    let file = |name: &str| root.join(format!("{name}.{process}"));
    let is_asked = |name: &str| {
        let path = file(name);
        // One of several threads gets to remove it.
        std::fs::read_to_string(&path).is_ok_and(|wanted| wanted == point)
            && std::fs::remove_file(path).is_ok()
    };
    if is_asked("block") {
        std::thread::sleep(LEASE * 2);
    }
    if is_asked("halt") {
        std::fs::write(file("halted"), "").unwrap();
        kill_process(getpid(), Signal::STOP).unwrap();
        // Another thread may have got the signal, and this one would run for a while.
        while !file("go").exists() {
            std::thread::sleep(Duration::from_millis(1));
        }
        // The test keeps the other file until then.
        let _ = std::fs::remove_file(file("halted"));
    }
}
