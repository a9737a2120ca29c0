//! Workers and their leases.
//!
//! A store that claims a session first registers itself as a worker: a row with a lease. A thread of its own renews it, so that nothing that the runtime of an agent does
//! can delay it. One row holds all sessions of the store, so renewing costs the same for one session and for a thousand. Leases are compared with the clock of the server only.
//!
//! A worker that cannot reach the server stops before its lease is over: it counts from before the last renewal that succeeded, with a clock of this machine that does not stop while the
//! machine sleeps. The two clocks are never compared.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use backstitch_core::ports::StoreError;
use tokio_postgres::Row;
use uuid::Uuid;

use super::address::PostgresAddress;
use super::error::Failure;
use super::options::PostgresOptions;
use super::schema::get;
use super::server::{Server, parameters};

/// Where a process runs: its machine since its start, and its process namespace. Only a process in the same place can tell whether it lives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ProcessPlace {
    pub(super) host: String,
    pub(super) place: String,
    pub(super) pid: u32,
    /// Time of the start of the process in ticks of the machine, which tells it from a later one of the same number.
    pub(super) started: i64,
}

impl ProcessPlace {
    /// The place of this process.
    pub(super) fn of_this_process() -> Self {
        let pid = std::process::id();
        Self { host: host(), place: place(), pid, started: started(pid).unwrap_or_default() }
    }

    /// Returns whether a process certainly has ended. A process of another user may be hidden.
    pub(super) fn has_ended(&self) -> bool {
        if self.place.is_empty() || self.place != place() {
            return false;
        }
        match state_of(self.pid) {
            ProcessState::Since(started) => started != self.started,
            ProcessState::Ended => true,
            ProcessState::Hidden => false,
        }
    }
}

#[cfg(target_os = "linux")]
fn place() -> String {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let namespace = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    match boot.trim() {
        "" => String::new(),
        boot => format!("{boot} {}", namespace.display()),
    }
}

#[cfg(not(target_os = "linux"))]
fn place() -> String {
    String::new()
}

/// What can be known of a process.
enum ProcessState {
    /// It runs since this time.
    Since(i64),
    /// There is none, or it has ended and its parent has not noticed.
    Ended,
    /// There is one of another user, of which no more is shown, or nothing can be known.
    Hidden,
}

fn state_of(pid: u32) -> ProcessState {
    let Ok(text) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { return unreadable(pid) };
    // The name, which may hold anything, ends at the last parenthesis.
    let mut fields = text.rsplit_once(')').map_or("", |(_, fields)| fields).split_whitespace();
    match fields.next() {
        Some("Z" | "X") => ProcessState::Ended,
        Some(_) => fields
            .nth(18)
            .and_then(|time| time.parse().ok())
            .map_or(ProcessState::Hidden, ProcessState::Since),
        None => ProcessState::Hidden,
    }
}

/// The state of a process that `/proc` does not show, which may be mounted so that it hides those of other users.
#[cfg(unix)]
fn unreadable(pid: u32) -> ProcessState {
    let pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
    match pid.map(rustix::process::test_kill_process) {
        Some(Err(rustix::io::Errno::SRCH)) => ProcessState::Ended,
        _ => ProcessState::Hidden,
    }
}

#[cfg(not(unix))]
fn unreadable(_: u32) -> ProcessState {
    ProcessState::Hidden
}

/// Time of the start of a process.
fn started(pid: u32) -> Option<i64> {
    match state_of(pid) {
        ProcessState::Since(started) => Some(started),
        _ => None,
    }
}

/// Time since an unknown moment, which runs on while the machine sleeps.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn clock() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or_default())
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn clock() -> Duration {
    static START: std::sync::LazyLock<std::time::Instant> = std::sync::LazyLock::new(std::time::Instant::now);
    START.elapsed()
}

#[cfg(unix)]
fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

#[cfg(not(unix))]
fn host() -> String {
    std::env::var("COMPUTERNAME").unwrap_or_else(|_| "unknown".to_owned())
}

/// The worker of a store, if it has claimed anything.
pub(super) struct Lease {
    address: PostgresAddress,
    options: PostgresOptions,
    current: Arc<Mutex<Option<Registration>>>,
    renewal: Mutex<Option<Renewal>>,
    /// One registration at a time.
    registering: tokio::sync::Mutex<()>,
}

/// A worker, and the time of this machine's clock at which it stops unless its lease is renewed.
#[derive(Debug, Clone, Copy)]
struct Registration {
    worker: Uuid,
    stops_at: Duration,
}

impl Registration {
    /// A worker whose lease was renewed by a statement that was sent at this time, or later.
    fn renewed(worker: Uuid, sent_at: Duration, lease: Duration) -> Self {
        Self { worker, stops_at: sent_at + lease * 4 / 5 }
    }

    fn time_left(&self, worker: Uuid, now: Duration) -> Duration {
        if self.worker == worker { self.stops_at.saturating_sub(now) } else { Duration::ZERO }
    }
}

struct Renewal {
    stop: Sender<()>,
    thread: JoinHandle<()>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Lease {
    pub(super) fn new(address: PostgresAddress, options: PostgresOptions) -> Self {
        Self {
            address,
            options,
            current: Arc::default(),
            renewal: Mutex::default(),
            registering: tokio::sync::Mutex::default(),
        }
    }

    /// Duration of a lease in seconds.
    pub(super) fn seconds(&self) -> f64 {
        self.options.lease.as_secs_f64()
    }

    /// Returns the worker, which is registered if there is none.
    pub(super) async fn worker(&self, server: &Server) -> Result<Uuid, Failure> {
        let _alone = self.registering.lock().await;
        if let Some(current) = *lock(&self.current) {
            return Ok(current.worker);
        }
        let place = ProcessPlace::of_this_process();
        // Forgetting those that ended long ago is housekeeping, and no reason to fail.
        let _ = server.query("SELECT {schema}.reap_1($1)", parameters![self.seconds() => FLOAT8]).await;
        let sql = "INSERT INTO {schema}.workers (id, name, host, place, pid, started, lease_until)
            VALUES (pg_catalog.gen_random_uuid(), 'backstitch', $1, $2, $3, $4, clock_timestamp() + pg_catalog.make_interval(secs => $5))
            RETURNING id";
        let values = parameters![
            place.host => TEXT, place.place => TEXT, i64::from(place.pid) => INT8, place.started => INT8,
            self.seconds() => FLOAT8
        ];
        let sent_at = clock();
        let rows = server.read(sql, values).await?;
        let row = rows.first().ok_or_else(|| StoreError::Backend("no worker was registered".into()))?;
        let worker: Uuid = get(row, 0)?;
        *lock(&self.current) = Some(Registration::renewed(worker, sent_at, self.options.lease));
        self.keep_renewing()?;
        Ok(worker)
    }

    /// The worker, if there is one.
    pub(super) fn current(&self) -> Option<Uuid> {
        lock(&self.current).map(|current| current.worker)
    }

    /// Forgets a worker whose lease is over. The next claim registers another one.
    pub(super) fn forget(&self, worker: Uuid) {
        let mut current = lock(&self.current);
        if current.is_some_and(|current| current.worker == worker) {
            *current = None;
        }
    }

    /// Time for which a worker may still act on what it holds. None is left if it has not renewed its lease for most of its duration, or is not the worker of this
    /// store any more.
    pub(super) fn time_left(&self, worker: Uuid) -> Duration {
        let current = *lock(&self.current);
        current.map_or(Duration::ZERO, |current| current.time_left(worker, clock()))
    }

    fn keep_renewing(&self) -> Result<(), StoreError> {
        let mut renewal = lock(&self.renewal);
        if renewal.is_some() {
            return Ok(());
        }
        let (stop, stopped) = channel::<()>();
        let (address, options, current) =
            (self.address.clone(), self.options.clone(), Arc::clone(&self.current));
        let thread = std::thread::Builder::new().name("backstitch-lease".to_owned());
        let run = move || {
            let pause = options.lease / 3;
            // An answer that is late is not waited for: another connection may still be in time.
            let (deadline, soon) = (options.lease / 5, options.lease / 30);
            let options = options.with_connections(1).with_deadline(deadline.max(Duration::from_millis(300)));
            let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else {
                return;
            };
            let Ok(server) = Server::new(&address, options.clone(), true) else { return };
            let mut wait = pause;
            while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(wait) {
                wait = pause;
                let Some(Registration { worker, .. }) = *lock(&current) else { continue };
                let sent_at = clock();
                let renewed = runtime.block_on(renew(&server, worker, options.lease));
                let mut current = lock(&current);
                if current.is_none_or(|current| current.worker != worker) {
                    continue;
                }
                match renewed {
                    Ok(true) => *current = Some(Registration::renewed(worker, sent_at, options.lease)),
                    // It was reaped: everything that it held may be held by another.
                    Ok(false) => *current = None,
                    Err(_) => wait = soon,
                }
            }
        };
        let thread = thread.spawn(run).map_err(|error| StoreError::Backend(error.into()))?;
        *renewal = Some(Renewal { stop, thread });
        Ok(())
    }

    /// Stops renewing, and returns the worker.
    pub(super) fn end(&self) -> Option<Uuid> {
        if let Some(Renewal { stop, thread }) = lock(&self.renewal).take() {
            drop(stop);
            let _ = thread.join();
        }
        lock(&self.current).take().map(|current| current.worker)
    }
}

/// Renews a lease. Returns whether the worker still exists.
async fn renew(server: &Server, worker: Uuid, lease: Duration) -> Result<bool, Failure> {
    let sql = "UPDATE {schema}.workers SET lease_until = clock_timestamp() + pg_catalog.make_interval(secs => $2) WHERE id = $1 RETURNING 1";
    let rows = server.query(sql, parameters![worker => UUID, lease.as_secs_f64() => FLOAT8]).await?;
    Ok(!rows.is_empty())
}

/// Frees what a worker holds, and forgets it.
pub(super) async fn retire(server: &Server, worker: Uuid) -> Result<(), Failure> {
    let sql = "WITH freed AS (UPDATE {schema}.sessions SET claim = NULL, worker = NULL, owner = NULL, since = NULL WHERE worker = $1)
        DELETE FROM {schema}.workers WHERE id = $1";
    server.query(sql, parameters![worker => UUID]).await?;
    Ok(())
}

/// The workers that count as alive: their leases are not over, or the server has just started and nobody could renew, and their processes have not ended in this
/// place.
pub(super) async fn living(server: &Server, lease: &Lease) -> Result<Vec<Uuid>, Failure> {
    let sql = "SELECT id, host, place, pid, started FROM {schema}.workers
        WHERE lease_until > now() OR pg_postmaster_start_time() > now() - pg_catalog.make_interval(secs => $1)";
    let rows = server.read(sql, parameters![lease.seconds() => FLOAT8]).await?;
    let places = rows.iter().map(place_in).collect::<Result<Vec<_>, _>>()?;
    Ok(places.into_iter().filter(|(_, place)| !place.has_ended()).map(|(worker, _)| worker).collect())
}

/// The workers whose processes have certainly ended, as this process can tell, whatever their leases say.
pub(super) async fn list_ended(server: &Server) -> Result<Vec<Uuid>, Failure> {
    let sql = "SELECT id, host, place, pid, started FROM {schema}.workers WHERE place = $1 AND place <> ''";
    let rows = server.read(sql, parameters![place() => TEXT]).await?;
    let places = rows.iter().map(place_in).collect::<Result<Vec<_>, _>>()?;
    Ok(places.into_iter().filter(|(_, place)| place.has_ended()).map(|(worker, _)| worker).collect())
}

fn place_in(row: &Row) -> Result<(Uuid, ProcessPlace), Failure> {
    let pid: i64 = get(row, 3)?;
    let place = ProcessPlace {
        host: get(row, 1)?,
        place: get(row, 2)?,
        pid: u32::try_from(pid).unwrap_or_default(),
        started: get(row, 4)?,
    };
    Ok((get(row, 0)?, place))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn only_a_process_in_the_same_place_is_known_to_have_ended() {
        let own = ProcessPlace::of_this_process();
        assert!(!own.place.is_empty() && own.started > 0 && !own.has_ended());
        let later = ProcessPlace { started: own.started + 1, ..own.clone() };
        assert!(later.has_ended(), "another process got its number");
        let elsewhere = ProcessPlace { place: "elsewhere".to_owned(), ..later };
        assert!(!elsewhere.has_ended());
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let place = ProcessPlace { pid: child.id(), started: started(child.id()).unwrap(), ..own };
        assert!(!place.has_ended());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(place.has_ended());
    }

    #[test]
    fn a_worker_stops_before_its_lease_is_over() {
        let lease = Duration::from_secs(15);
        let now = clock();
        assert!(now > Duration::ZERO && clock() >= now);
        let registration = Registration::renewed(Uuid::nil(), now, lease);
        let left = |worker, passed| registration.time_left(worker, now + Duration::from_secs(passed));
        assert_eq!(left(Uuid::nil(), 0), Duration::from_secs(12));
        assert_eq!([11, 12, 60].map(|passed| left(Uuid::nil(), passed).as_secs()), [1, 0, 0]);
        assert!(left(Uuid::max(), 0).is_zero(), "the lease of another worker");
    }

    #[test]
    fn a_process_that_is_not_shown_is_not_taken_for_dead() {
        // A process of another user that /proc hides: there is one, and it cannot be looked at.
        assert!(matches!(unreadable(std::process::id()), ProcessState::Hidden));
        assert!(matches!(unreadable(1), ProcessState::Hidden));
        assert!(matches!(unreadable(u32::try_from(i32::MAX).unwrap()), ProcessState::Ended));
    }
}
