//! The faults, in an order that a seed decides. Those that last end by themselves.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use backstitch_core::rng::Rng;
use backstitch_testkit::postgres::{StopMode, TestServer};
use rustix::process::Signal;

use super::fleet::{Fleet, HALTS};
use super::place::{LEASE, POOLED, Place, TEST, WORKERS};
use super::{PATIENCE, say};

/// Where libfaketime is installed.
const FAKETIME: [&str; 3] = [
    "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1",
    "/usr/lib/aarch64-linux-gnu/faketime/libfaketime.so.1",
    "/usr/lib64/faketime/libfaketime.so.1",
];

/// Something that goes wrong. Times are tenths of a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// A worker is killed, and another one started.
    Kill,
    /// All workers are replaced, one after the other, and the store is migrated in between.
    RollingUpgrade,
    /// A worker is stopped for a time.
    Stop { tenths: u32 },
    /// The same at a point before an effect outside.
    Halt { point: &'static str, tenths: u32 },
    /// A thread that drives sessions is blocked.
    Block,
    /// The server is restarted.
    Restart(StopMode),
    /// There is no server for two leases.
    Away,
    /// The disk of the tables is full for two leases.
    FillDisk,
    /// The pooler is killed.
    KillPooler,
    /// Others use all connections of the pooler.
    OccupyPooler,
    /// The connections of a worker end.
    Cut,
    /// Everything between a worker and the server is late.
    Delay,
    /// Nothing arrives, and no connection ends.
    HalfOpen,
    /// The server commits, and its answers are lost.
    LoseAnswers,
    /// The clock of a worker is wrong.
    Skew { hours: i32 },
}

impl Fault {
    /// All faults of a store, each once, in a random order.
    pub(crate) fn plan(place: &Place, rng: &mut Rng, is_long: bool) -> Vec<Self> {
        let long = |tenths| Self::Stop { tenths };
        let mut plan = vec![Self::Kill, Self::Kill, Self::RollingUpgrade, long(30), Self::Block];
        let either = usize::try_from(rng.below(2)).unwrap();
        let hours = if rng.below(2) == 0 { 1 } else { -1 };
        match is_long {
            true => {
                plan.extend([long(5), long(10), Self::Skew { hours: -hours }]);
                plan.extend(HALTS.map(|point| Self::Halt { point, tenths: 30 }));
            }
            false => plan.extend([long([5, 10][either]), Self::Halt { point: HALTS[either], tenths: 20 }]),
        }
        if place.server.is_some() {
            plan.extend([Self::Restart(StopMode::Fast), Self::Restart(StopMode::Immediate), Self::Away]);
            plan.extend([Self::Cut, Self::Delay, Self::HalfOpen, Self::LoseAnswers]);
            plan.extend([Self::KillPooler, Self::OccupyPooler, Self::FillDisk, Self::Skew { hours }]);
        } else {
            plan.extend([Self::Kill; 5]);
        }
        let has_pooler = place.server.as_ref().is_some_and(|server| server.pooler_socket().is_some());
        plan.retain(|fault| has_pooler || !matches!(fault, Self::KillPooler | Self::OccupyPooler));
        let has_disk = place.server.as_ref().is_some_and(TestServer::has_small_disk);
        plan.retain(|fault| has_disk || *fault != Self::FillDisk);
        let has_skew = place.server.is_some() && clock(1).is_some();
        plan.retain(|fault| has_skew || !matches!(fault, Self::Skew { .. }));
        rng.shuffle(&mut plan);
        plan
    }
}

/// The variables that make the clock of a process wrong. `None` without libfaketime.
fn clock(hours: i32) -> Option<Vec<(&'static str, String)>> {
    let library = FAKETIME.into_iter().find(|path| std::path::Path::new(path).exists())?;
    let variables = [
        ("LD_PRELOAD", library.to_owned()),
        ("FAKETIME", format!("{hours:+}h")),
        ("FAKETIME_DISABLE_SHM", "1".to_owned()),
        ("FAKETIME_DONT_FAKE_MONOTONIC", "1".to_owned()),
        ("DONT_FAKE_MONOTONIC", "1".to_owned()),
    ];
    Some(variables.into())
}

pub(crate) struct Faults<'a> {
    place: &'a Place,
    fleet: &'a Fleet,
    rng: Rng,
    /// Faults that last, with their workers.
    active: Vec<(usize, JoinHandle<()>)>,
    count: BTreeMap<String, usize>,
}

impl<'a> Faults<'a> {
    pub(crate) fn new(place: &'a Place, fleet: &'a Fleet, rng: Rng) -> Self {
        if place.server.is_some() && clock(1).is_none() {
            say("libfaketime is not installed: wrong clocks are NOT tested");
        }
        Self { place, fleet, rng, active: Vec::new(), count: BTreeMap::new() }
    }

    pub(crate) fn rng(&mut self) -> &mut Rng {
        &mut self.rng
    }

    /// Whether a fault lasts.
    pub(crate) fn are_active(&mut self) -> bool {
        for (_, ended) in self.active.extract_if(.., |(_, ending)| ending.is_finished()) {
            ended.join().expect("a fault ends as it should");
        }
        !self.active.is_empty()
    }

    /// The number of faults, by their names.
    pub(crate) fn summary(&self) -> String {
        let mut all: Vec<String> = self.count.iter().map(|(name, count)| format!("{count} {name}")).collect();
        if let Some(server) = &self.place.server {
            let log = std::fs::read_to_string(server.directory.join("log")).unwrap_or_default();
            all.push(format!("{} statements without room", log.matches("No space left on device").count()));
        }
        all.join(", ")
    }

    /// A random worker without a fault that lasts.
    fn free_worker(&mut self) -> usize {
        loop {
            self.are_active();
            let is_busy = |worker: usize| self.active.iter().any(|(busy, _)| *busy == worker);
            let free: Vec<usize> = (0..WORKERS).filter(|worker| !is_busy(*worker)).collect();
            if !free.is_empty() {
                return free[usize::try_from(self.rng.below(free.len() as u64)).unwrap()];
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Ends a fault of a worker after a time.
    fn end_after(&mut self, worker: usize, time: Duration, end: impl FnOnce() + Send + 'static) {
        let ending = std::thread::spawn(move || {
            std::thread::sleep(time);
            end();
        });
        self.active.push((worker, ending));
    }

    pub(crate) fn begin(&mut self, fault: Fault) {
        *self.count.entry(format!("{fault:?}")).or_default() += 1;
        let worker = self.free_worker();
        let fleet = self.fleet.clone();
        let place = self.place;
        let file = move |name: &str| place.path(format!("{name}.{worker}"));
        match fault {
            Fault::Kill => fleet.replace(worker, &[]),
            Fault::RollingUpgrade => {
                // New workers on one file open it themselves.
                let store = place.server.is_some().then(|| place.of_test());
                self.end_after(TEST, Duration::ZERO, move || {
                    for worker in 0..WORKERS {
                        fleet.upgrade(worker);
                        store.iter().for_each(Place::migrate);
                    }
                });
            }
            Fault::Stop { tenths } => {
                fleet.send(worker, Signal::STOP);
                self.end_after(worker, LEASE * tenths / 10, move || fleet.send(worker, Signal::CONT));
            }
            Fault::Halt { point, tenths } => {
                std::fs::write(file("halt"), point).unwrap();
                let halt = Halt { files: ["halt", "halted", "go"].map(file), time: LEASE * tenths / 10 };
                self.end_after(worker, Duration::ZERO, move || halt.last(&fleet, worker));
            }
            Fault::Block => {
                let block = file("block");
                std::fs::write(&block, HALTS[1]).unwrap();
                let time = LEASE * 2 + Duration::from_secs(1);
                self.end_after(worker, time, move || drop(std::fs::remove_file(block)));
            }
            Fault::Skew { hours } => {
                let variables = clock(hours).expect("plans have no skew without libfaketime");
                fleet.replace(worker, &variables);
                self.end_after(worker, LEASE * 2, move || fleet.replace(worker, &[]));
            }
            Fault::Cut => place.proxies[worker].cut(),
            Fault::LoseAnswers => place.proxies[worker].lose(4),
            Fault::Delay | Fault::HalfOpen => {
                let proxy = place.proxies[worker].clone();
                match fault {
                    Fault::Delay => proxy.delay(LEASE / 10),
                    _ => proxy.freeze(),
                }
                self.end_after(worker, LEASE * 3 / 2, move || proxy.resume());
            }
            Fault::Restart(_) | Fault::Away | Fault::FillDisk | Fault::KillPooler | Fault::OccupyPooler => {
                self.begin_of_server(fault)
            }
        }
    }

    fn begin_of_server(&mut self, fault: Fault) {
        let place = self.place;
        let server = place.server.as_ref().expect("plans have no faults of a server without one");
        match fault {
            Fault::Restart(mode) => {
                server.stop(mode);
                server.start_again();
            }
            Fault::FillDisk => {
                let ballast = server.fill_disk().expect("plans fill no disk without one");
                self.end_after(TEST, LEASE * 2, move || drop(std::fs::remove_file(ballast)));
            }
            Fault::KillPooler => {
                server.kill_pooler();
                std::thread::sleep(LEASE / 2);
                server.start_pooler_again();
            }
            Fault::OccupyPooler => {
                let mut others = server.occupy_pooler(LEASE * 3 / 2);
                self.end_after(POOLED, Duration::ZERO, move || {
                    for other in &mut others {
                        let _ = other.wait();
                    }
                });
            }
            _ => {
                let pids = || -> Vec<String> {
                    (0..WORKERS).map(|worker| self.fleet.pid(worker).to_string()).collect()
                };
                let before = pids().join(", ");
                // Workers that are upgraded leave by themselves.
                let is_upgrading = self.active.iter().any(|(busy, _)| *busy == TEST);
                let half = LEASE.as_secs_f64() / 2.0;
                let living = server.sql(&format!(
                    "SELECT id, pid FROM chaos.workers WHERE pid IN ({before}) AND lease_until > now() + interval '{half} s'"
                ));
                server.stop(StopMode::Fast);
                std::thread::sleep(LEASE * 2);
                server.start_again();
                // Nobody could renew a lease, so nobody may be taken for dead, for as long as one lease.
                let found = server.sql(&format!(
                    "SELECT pg_postmaster_start_time() > now() - interval '{} s', (SELECT string_agg(id::text, ' ') FROM chaos.workers)",
                    LEASE.as_secs_f64()
                ));
                let (is_early, found) = found.split_once('|').unwrap();
                // Another fault may have replaced a process meanwhile, and its worker is dead then.
                let after = pids();
                let rows = living.lines().filter_map(|row| row.split_once('|'));
                let same = rows.filter(|(_, pid)| after.iter().any(|known| known == pid));
                let lost: Vec<&str> = same.map(|(id, _)| id).filter(|id| !found.contains(*id)).collect();
                assert!(
                    is_early == "f" || is_upgrading || lost.is_empty(),
                    "workers were taken for dead: {lost:?} of {living}"
                );
            }
        }
    }

    /// Sets the clock of the server, if there is one, and starts a standby without which nothing is committed.
    pub(crate) fn prepare_failover(&mut self) {
        let Some(server) = &self.place.server else { return };
        if let Some(variables) = clock(1) {
            *self.count.entry("Skew of the server".to_owned()).or_default() += 1;
            server.set_variables(variables);
            server.stop(StopMode::Fast);
            server.start_again();
        }
        server.start_standby();
    }

    /// Kills the server, and lets its standby take its place.
    pub(crate) fn fail_over(&mut self) {
        if self.place.server.is_some() {
            *self.count.entry("failover".to_owned()).or_default() += 1;
            self.place.fail_over();
        }
    }
}

/// A worker that stops itself at a point, if it reaches it soon.
struct Halt {
    /// That asks for it, that says that it has happened, and that lets it continue.
    files: [PathBuf; 3],
    time: Duration,
}

impl Halt {
    fn last(self, fleet: &Fleet, worker: usize) {
        let Self { files: [halt, halted, go], time } = self;
        let began = Instant::now();
        while !halted.exists() {
            // The process that removes the file decides: the worker stops, or it never does.
            if began.elapsed() > LEASE * 3 && std::fs::remove_file(&halt).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        std::thread::sleep(time);
        let process = fleet.pid(worker);
        std::fs::write(&go, "").unwrap();
        let began = Instant::now();
        // The thread that has stopped the worker removes the file once it continues. An upgrade may replace the process before that.
        while halted.exists() && fleet.pid(worker) == process {
            assert!(began.elapsed() < PATIENCE, "worker {worker} does not continue");
            // Repeated, because the worker may stop itself only now.
            fleet.send(worker, Signal::CONT);
            std::thread::sleep(Duration::from_millis(10));
        }
        for file in [halted, go] {
            let _ = std::fs::remove_file(file);
        }
    }
}
