//! Claims to sessions.
//!
//! The fence decides who may write. It is stored in the database, grows with each claim, and is checked
//! inside each append. An operating system lock tells whether the holder is alive: each claim has its own
//! file beside the store (`store.db-locks/SESSION.FENCE`), which is locked as long as the claim is held. The
//! system releases the lock when the process ends, however it ends. So a session is free as soon as its
//! holder is killed. A process that is merely stopped still holds its claim; if the session was taken over
//! since then, its fence is stale when it continues.
//!
//! Locks are on separate files, never on the database, where closing any descriptor would release SQLite's
//! locks. Claims are made inside write transactions, which serialise them across processes.

use std::collections::HashMap;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use backstitch_core::id::SessionId;
use backstitch_core::ports::{ClaimMode, FenceToken, Owner, Process, SessionClaim, StoreError};
use backstitch_core::time::Timestamp;
use rusqlite::{Connection, params};

use super::error::Failure;
use super::sql::{execute, first};
use super::{generation, private};
use crate::time::now;

/// Maximum time that a lock may outlive its holder.
const LONGEST_OUTLIVED: Duration = Duration::from_secs(5);

/// Lock files of a store, and the claims that this value holds.
#[derive(Default)]
pub(super) struct Locks {
    /// `None` for a store in memory, which no other process can open.
    directory: Option<PathBuf>,
    /// The claims to a store in memory. Each lives as long as its guard.
    living: Mutex<HashMap<(SessionId, i64), Weak<()>>>,
    held: Mutex<HashMap<(SessionId, u64), ClaimGuard>>,
}

/// A held claim: its locked file, and the state at the time of the claim.
pub(super) struct ClaimGuard {
    lock: Option<(File, PathBuf)>,
    /// Shows in a store in memory that the claim lives.
    _alive: Arc<()>,
    /// The garbage collection counter at the time of the claim.
    generation: i64,
}

impl Drop for ClaimGuard {
    fn drop(&mut self) {
        // Closing is not enough: a child process that is being started has the descriptor too, until it
        // executes its program. The file name is unique to this claim, so removing it affects no other.
        if let Some((file, path)) = &self.lock {
            let _ = file.unlock();
            let _ = fs::remove_file(path);
        }
    }
}

impl Locks {
    pub(super) fn beside(store: &Path) -> Self {
        Self { directory: Some(private::beside(store, "-locks")), ..Self::default() }
    }

    /// Takes the lock that guards creating and migrating the tables.
    pub(super) fn for_opening(&self) -> io::Result<File> {
        let file = open(&self.file("opening").ok_or(io::ErrorKind::NotFound)?)?;
        file.lock()?;
        Ok(file)
    }

    /// Path at which the holder of the opening lock prepares a new database.
    pub(super) fn new_database(&self) -> io::Result<PathBuf> {
        Ok(self.file("new").ok_or(io::ErrorKind::NotFound)?)
    }

    fn lock_held(&self) -> MutexGuard<'_, HashMap<(SessionId, u64), ClaimGuard>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_living(&self) -> MutexGuard<'_, HashMap<(SessionId, i64), Weak<()>>> {
        self.living.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a claim until it is released.
    pub(super) fn keep(&self, claim: &SessionClaim, held: ClaimGuard) {
        self.lock_held().insert((claim.session, claim.fence.0), held);
    }

    /// Drops a claim and unlocks its file.
    pub(super) fn let_go(&self, session: SessionId, fence: FenceToken) {
        let held = self.lock_held().remove(&(session, fence.0));
        drop(held);
        self.lock_living().remove(&(session, fence.0.cast_signed()));
    }

    /// The garbage collection counter at the time of a claim, if this value holds the claim.
    pub(super) fn generation(&self, session: SessionId, fence: FenceToken) -> Option<i64> {
        self.lock_held().get(&(session, fence.0)).map(|held| held.generation)
    }

    fn file(&self, name: &str) -> Option<PathBuf> {
        self.directory.as_ref().map(|directory| directory.join(name))
    }

    fn path(&self, session: SessionId, fence: i64) -> Option<PathBuf> {
        self.file(&format!("{session}.{fence}"))
    }

    /// Returns whether the holder of a claim is alive. The check takes a shared lock, so concurrent checks do
    /// not disturb each other.
    pub(super) fn lives(&self, session: SessionId, fence: i64) -> Result<bool, Failure> {
        let Some(path) = self.path(session, fence) else {
            let living = self.lock_living();
            return Ok(living.get(&(session, fence)).is_some_and(|claim| claim.strong_count() > 0));
        };
        match File::open(path) {
            Ok(file) => match file.try_lock_shared() {
                Ok(()) => Ok(false),
                Err(TryLockError::WouldBlock) => Ok(true),
                Err(TryLockError::Error(error)) => Err(StoreError::Backend(error.into()).into()),
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            // Another user's file. It counts as held, because its lock cannot be checked.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(true),
            Err(error) => Err(StoreError::Backend(error.into()).into()),
        }
    }

    /// Waits for the lock of a holder that has ended, and returns whether it is free. A process that was
    /// killed while it started a child leaves its lock with the child until that executes its program.
    fn is_freed(&self, session: SessionId, fence: i64) -> Result<bool, Failure> {
        let until = Instant::now() + LONGEST_OUTLIVED;
        while self.lives(session, fence)? {
            if Instant::now() >= until {
                return Ok(false);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(true)
    }

    fn take(&self, session: SessionId, fence: i64, generation: i64) -> Result<ClaimGuard, Failure> {
        let alive = Arc::new(());
        let Some(path) = self.path(session, fence) else {
            self.lock_living().insert((session, fence), Arc::downgrade(&alive));
            return Ok(ClaimGuard { lock: None, _alive: alive, generation });
        };
        let refused = |error: io::Error| match error.kind() {
            io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => {
                let directory = path.parent().unwrap_or(&path).display();
                StoreError::ReadOnly { reason: format!("{directory}: {error}") }
            }
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                StoreError::Full { reason: "the disk is full".to_owned(), source: Some(error.into()) }
            }
            _ => StoreError::Backend(error.into()),
        };
        let file = open(&path).map_err(refused)?;
        match file.try_lock() {
            Ok(()) => Ok(ClaimGuard { lock: Some((file, path)), _alive: alive, generation }),
            // This claim is not yet published, so no other process can have locked its file.
            Err(error) => Err(StoreError::Backend(error.into()).into()),
        }
    }
}

fn open(path: &Path) -> io::Result<File> {
    match private::open_or_create_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            private::create_directories(path.parent().unwrap_or(path))?;
            private::open_or_create_file(path)
        }
        result => result,
    }
}

/// Latest claim to a session.
struct Latest {
    fence: i64,
    owner: Option<Owner>,
    process: Option<Process>,
}

fn latest(connection: &Connection, session: SessionId) -> Result<Option<Latest>, Failure> {
    let sql = "SELECT fence, owner, host, pid, since FROM claims WHERE session = ?1";
    first(connection, sql, [session.to_string()], |row| {
        let (host, pid): (Option<String>, Option<i64>) = (row.get(2)?, row.get(3)?);
        let since = row.get::<_, Option<String>>(4)?.and_then(|text| text.parse::<Timestamp>().ok());
        let pid = pid.and_then(|pid| u32::try_from(pid).ok());
        let process = host.zip(pid).zip(since);
        Ok(Latest {
            fence: row.get(0)?,
            owner: row.get::<_, Option<String>>(1)?.map(Owner::new),
            process: process.map(|((host, pid), since)| Process { host, pid, since }),
        })
    })
}

/// Owner of the latest claim, if its holder is alive.
pub(super) fn holder(
    locks: &Locks,
    connection: &Connection,
    session: SessionId,
) -> Result<Option<Owner>, Failure> {
    match latest(connection, session)? {
        Some(Latest { fence, owner: Some(owner), .. }) if locks.lives(session, fence)? => Ok(Some(owner)),
        _ => Ok(None),
    }
}

/// Returns whether a claim is the latest one, and was not released.
pub(super) fn is_current(
    connection: &Connection,
    session: SessionId,
    fence: FenceToken,
) -> Result<bool, Failure> {
    let latest = latest(connection, session)?;
    Ok(latest.is_some_and(|latest| latest.owner.is_some() && latest.fence.cast_unsigned() == fence.0))
}

/// Claims a session. The caller has begun a write transaction.
pub(super) fn claim(
    locks: &Locks,
    connection: &Connection,
    session: SessionId,
    owner: &Owner,
    mode: ClaimMode,
) -> Result<(SessionClaim, ClaimGuard), Failure> {
    let before = latest(connection, session)?;
    let mut fence = 1;
    if let Some(before) = before {
        let lives = locks.lives(session, before.fence)?
            && !(before.process.as_ref().is_some_and(has_ended) && locks.is_freed(session, before.fence)?);
        if let (Some(owner), ClaimMode::IfFree, true) = (before.owner, mode, lives) {
            return Err(StoreError::Held { session, owner, process: before.process }.into());
        }
        fence = before.fence.saturating_add(1);
        if !lives {
            // Left behind by a holder that died.
            let _ = locks.path(session, before.fence).map(fs::remove_file);
        }
    }
    let held = locks.take(session, fence, generation::current(connection)?)?;
    let sql = "INSERT OR REPLACE INTO claims (session, fence, owner, host, pid, since)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    let is_file = locks.directory.is_some();
    let (host, pid) = (is_file.then(host), is_file.then(std::process::id));
    let since = is_file.then(|| now().to_string());
    execute(connection, sql, params![session.to_string(), fence, owner.to_string(), host, pid, since])?;
    Ok((SessionClaim { session, fence: FenceToken(fence.cast_unsigned()), owner: owner.clone() }, held))
}

/// Fails with `Fenced` unless the fence belongs to the current holder.
pub(super) fn check_fence(
    connection: &Connection,
    session: SessionId,
    name: &str,
    fence: FenceToken,
) -> Result<(), Failure> {
    let sql = "SELECT fence, owner FROM claims WHERE session = ?1";
    let claim: Option<(i64, Option<String>)> =
        first(connection, sql, [name], |row| Ok((row.get(0)?, row.get(1)?)))?;
    match claim {
        Some((latest, Some(_))) if latest.cast_unsigned() == fence.0 => Ok(()),
        claim => {
            let owner = claim.and_then(|(_, owner)| owner).map(Owner::new);
            Err(StoreError::Fenced { session, fence, owner }.into())
        }
    }
}

/// Releases a session if this claim still holds it. The caller has begun a write transaction.
pub(super) fn release(connection: &Connection, session: SessionId, fence: FenceToken) -> Result<(), Failure> {
    let Ok(fence) = i64::try_from(fence.0) else { return Ok(()) };
    let sql = "UPDATE claims SET owner = NULL, host = NULL, pid = NULL, since = NULL
        WHERE session = ?1 AND fence = ?2 AND owner IS NOT NULL";
    execute(connection, sql, params![session.to_string(), fence])
}

/// Returns whether a process of this machine has ended.
#[cfg(unix)]
fn has_ended(process: &Process) -> bool {
    let pid = i32::try_from(process.pid).ok().and_then(rustix::process::Pid::from_raw);
    let gone = pid.is_some_and(|pid| rustix::process::test_kill_process(pid) == Err(rustix::io::Errno::SRCH));
    gone && process.host == host()
}

#[cfg(not(unix))]
fn has_ended(_: &Process) -> bool {
    false
}

#[cfg(unix)]
fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

#[cfg(not(unix))]
fn host() -> String {
    std::env::var("COMPUTERNAME").unwrap_or_else(|_| "unknown".to_owned())
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_lock_that_outlives_its_holder_is_waited_for() {
        let above = tempfile::tempdir().unwrap();
        let locks = Locks::beside(&above.path().join("store.db"));
        let session = "01890a5d-ac96-774b-bcce-000000000001".parse::<SessionId>().unwrap();
        let held = locks.take(session, 1, 0).unwrap();
        assert!(locks.lives(session, 1).unwrap());
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(100));
                drop(held);
            });
            assert!(locks.is_freed(session, 1).unwrap());
        });
    }

    #[test]
    fn only_a_process_of_this_machine_is_known_to_have_ended() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        let process = |host: String, pid| Process { host, pid, since: Timestamp::UNIX_EPOCH };
        assert!(has_ended(&process(host(), child.id())));
        assert!(!has_ended(&process("elsewhere".to_owned(), child.id())));
        assert!(!has_ended(&process(host(), std::process::id())));
    }
}
