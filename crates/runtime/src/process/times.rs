//! When the processes of a call ran, by the clock of the file system that they wrote to.
//!
//! After a crash, the files that an interrupted call has changed are restored, and what others changed later stays. The two are told
//! apart by the times of files. So the supervisor of a process keeps a file about it beside the store: when the process
//! started, when it was last seen to run, and when its last descendant was dead. The times are those that the file system
//! of the workspace gives to a file that changes at that moment: they are ordered with the times of all other files there,
//! whatever the clock of this machine says.
//!
//! Calls change files in the runtime itself too. So a session whose calls may write has one more supervisor, without a process, which
//! keeps such a file about the runtime: it is created before the first of these calls.
//!
//! There is one file per process, named by call, attempt and process in a directory per session, or as that of the runtime. The runtime
//! marks the file of a process that has returned to the handler of its call, which may change files itself from then on. Files
//! about calls that have ended are removed when the next process of the session starts, and when the session is released;
//! those about runtimes, when no call is open.

use std::fs;
use std::path::{Path, PathBuf};

use backstitch_core::id::{CallId, SessionId};
use serde::{Deserialize, Serialize};

/// The directory of the files about processes of calls, in the runtime's own directory.
pub const CALL_TIMES: &str = "calls";

/// The end of the name of a file about a process that has returned to its call.
const RETURNED: &str = "returned";

/// The beginning of the name of a file about a runtime.
const RUNTIME: &str = "runtime";

/// How much the clock of a file system may be behind that of the journal: a second of renewals, and a second of difference.
const CLOCK_TOLERANCE: FileTime = 2_000_000_000;

/// The number of characters of the id of a call.
const CALL_ID_LENGTH: usize = 36;

/// A time of a file, in nanoseconds since 1970.
pub(crate) type FileTime = i64;

/// When a process ran.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ProcessTimes {
    /// The boot of the system.
    pub(super) boot: String,
    /// Before this time the process did not run.
    pub(super) started: FileTime,
    /// The last time at which it was seen to run.
    pub(super) alive: FileTime,
    /// The time at which its last descendant was dead. `None` while one may run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) dead: Option<FileTime>,
}

/// The times of the calls of one session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CallTimesDirectory(PathBuf);

impl CallTimesDirectory {
    /// Names the directory of a session, below the runtime's own directory.
    pub(crate) fn of(own: &Path, session: SessionId) -> Self {
        Self(own.join(CALL_TIMES).join(session.to_string()))
    }

    /// Returns the beginning of the paths for the processes of an attempt.
    pub(crate) fn attempt(&self, call: CallId, attempt: u32) -> PathBuf {
        self.0.join(format!("{call}-{attempt}"))
    }

    /// Returns the beginning of the paths for runtimes.
    pub(crate) fn runtime(&self) -> PathBuf {
        self.0.join(RUNTIME)
    }

    /// Returns when an attempt of a call ran. `None` if nothing is known about it, because there was no supervisor.
    pub(crate) fn read(&self, ran: AttemptRun) -> Option<CallTimes> {
        let found = self.processes_of(ran).into_iter();
        let found: Vec<_> = found.map(|(name, times)| (times, name.ends_with(RETURNED))).collect();
        CallTimes::of(&found)
    }

    /// Returns the supervisors that have not recorded the end of an attempt yet.
    pub(crate) fn supervisors(&self, ran: AttemptRun) -> Vec<i32> {
        let running = self.processes_of(ran).into_iter().filter(|(_, times)| times.dead.is_none());
        running.filter_map(|(name, _)| name.rsplit('.').next()?.parse().ok()).collect()
    }

    /// Returns what is known about the processes of an attempt, and about the runtimes that may have run it, each with the name of its
    /// file.
    fn processes_of(&self, ran: AttemptRun) -> Vec<(String, ProcessTimes)> {
        let attempt = format!("{}-{}.", ran.call, ran.attempt);
        let mut found = Vec::new();
        for (path, name) in self.files() {
            let is_runtime = name.strip_prefix(RUNTIME).is_some_and(|rest| rest.starts_with('.'));
            if !is_runtime && !name.starts_with(&attempt) {
                continue;
            }
            // A file that was cut off by a power loss says nothing, not even when the process started.
            let read = fs::read(&path).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
            let times: ProcessTimes = read.unwrap_or_default();
            // A runtime that was dead when the attempt began has not run it.
            let ran_it = |began: FileTime| {
                times.boot.is_empty() || times.end() >= began.saturating_sub(CLOCK_TOLERANCE)
            };
            if !is_runtime || ran.elsewhere_since.is_some_and(ran_it) {
                found.push((name, times));
            }
        }
        found
    }

    /// Removes what is known about calls that have ended. If none is open, also what is known about runtimes, except for this one, whose
    /// supervisor is named.
    pub(crate) fn remove_ended(&self, is_open: impl Fn(Option<CallId>) -> bool, own: Option<u32>) {
        let own = own.map(|own| own.to_string());
        for (path, name) in self.files() {
            let call: Option<CallId> = name.get(..CALL_ID_LENGTH).and_then(|call| call.parse().ok());
            let is_own = call.is_none() && own.as_ref().is_some_and(|own| name.ends_with(own.as_str()));
            if !is_own && !is_open(call) {
                let _ = fs::remove_file(path);
            }
        }
        // Fails as long as there are others.
        let _ = fs::remove_dir(&self.0);
    }

    fn files(&self) -> Vec<(PathBuf, String)> {
        let entries = fs::read_dir(&self.0).into_iter().flatten().flatten();
        entries.filter_map(|entry| Some((entry.path(), entry.file_name().into_string().ok()?))).collect()
    }
}

/// Converts a time of a file from its seconds and nanoseconds.
#[cfg(unix)]
pub(crate) fn file_time(seconds: i64, nanoseconds: i64) -> FileTime {
    seconds.saturating_mul(1_000_000_000).saturating_add(nanoseconds)
}

/// Returns the file about a process, by the beginning of its path.
#[cfg(unix)]
pub(super) fn file_of(attempt: &Path, process: u32) -> PathBuf {
    with_suffix(attempt, &process.to_string())
}

/// Records that a process has returned to its call.
#[cfg(unix)]
pub(super) fn mark_returned(attempt: &Path, process: u32) {
    let file = file_of(attempt, process);
    // There is none if the process has no supervisor.
    let _ = fs::rename(&file, with_suffix(&file, RETURNED));
}

#[cfg(unix)]
fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut path = path.as_os_str().to_owned();
    path.push(".");
    path.push(suffix);
    path.into()
}

/// An attempt of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AttemptRun {
    pub(crate) call: CallId,
    pub(crate) attempt: u32,
    /// When it began, if it ran in a runtime before this one.
    pub(crate) elsewhere_since: Option<FileTime>,
}

/// When the processes of an attempt ran, and its runtime.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CallTimes {
    /// What changed until this time, changed before the call was over.
    pub(crate) until: FileTime,
    /// What changed after this time, changed when the call was over. `None` if that is not known.
    pub(crate) over: Option<FileTime>,
    /// Whether the system was started again since.
    pub(crate) is_rebooted: bool,
}

impl CallTimes {
    /// Returns the times of a call of which only the next start of the system is known.
    pub(crate) fn before_start(start: FileTime) -> Self {
        Self { until: start, over: Some(start), is_rebooted: true }
    }

    /// Joins the times of processes, each with whether it has returned to its call.
    fn of(processes: &[(ProcessTimes, bool)]) -> Option<Self> {
        let (last, has_returned) = processes.iter().max_by_key(|(times, _)| times.end())?;
        // A process that was killed together with the runtime is the end of the call: its supervisor saw the runtime die before. So did
        // the supervisor of the runtime itself.
        // After one that has returned, the handler of the call continued until a time that nothing else shows.
        let are_all_dead = processes.iter().all(|(times, returned)| *returned || times.dead.is_some());
        let over = last.dead.filter(|_| are_all_dead && !has_returned);
        let is_rebooted = processes.iter().any(|(times, _)| !times.is_of_this_boot());
        Some(Self { until: last.end(), over, is_rebooted })
    }
}

impl ProcessTimes {
    /// Returns the last time at which it is known to have run.
    fn end(&self) -> FileTime {
        self.dead.unwrap_or(self.alive)
    }

    #[cfg(unix)]
    fn is_of_this_boot(&self) -> bool {
        self.boot == super::identity::boot()
    }

    #[cfg(not(unix))]
    fn is_of_this_boot(&self) -> bool {
        true
    }
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;

    fn times(started: FileTime, alive: FileTime, dead: Option<FileTime>) -> ProcessTimes {
        ProcessTimes { boot: super::super::identity::boot().to_owned(), started, alive, dead }
    }

    fn joined(processes: &[(ProcessTimes, bool)]) -> (FileTime, Option<FileTime>) {
        let joined = CallTimes::of(processes).unwrap();
        assert!(!joined.is_rebooted);
        (joined.until, joined.over)
    }

    #[test]
    fn a_process_that_died_with_the_runtime_is_the_end_of_its_call() {
        assert_eq!(joined(&[(times(1, 5, Some(7)), false)]), (7, Some(7)));
        assert_eq!(joined(&[(times(1, 2, Some(3)), true), (times(4, 5, Some(7)), false)]), (7, Some(7)));
        assert_eq!(joined(&[(times(4, 5, Some(6)), true), (times(1, 5, Some(7)), false)]), (7, Some(7)));
    }

    #[test]
    fn the_end_of_a_call_is_unknown_after_a_process_that_returned_and_without_its_supervisor() {
        assert_eq!(joined(&[(times(1, 5, Some(7)), true)]), (7, None));
        assert_eq!(joined(&[(times(1, 5, None), false)]), (5, None));
        assert_eq!(joined(&[(times(1, 5, None), false), (times(1, 5, Some(7)), false)]), (7, None));
        assert_eq!(CallTimes::of(&[]), None);
    }

    #[test]
    fn files_are_read_by_attempt_and_removed_by_call() {
        let place = tempfile::tempdir().unwrap();
        let session = "0198a7c0-5d6f-7a3b-9c1d-2e4f6a8b0c1e".parse().unwrap();
        let call: CallId = "0198a7c0-5d6f-7a3b-9c1d-2e4f6a8b0c1d".parse().unwrap();
        let directory = CallTimesDirectory::of(place.path(), session);
        fs::create_dir_all(&directory.0).unwrap();
        for (attempt, process, dead) in [(1, 20, 4), (2, 21, 9), (12, 22, 30)] {
            let file = file_of(&directory.attempt(call, attempt), process);
            fs::write(file, serde_json::to_vec(&times(1, 2, Some(dead))).unwrap()).unwrap();
        }
        let ran = |attempt| AttemptRun { call, attempt, elsewhere_since: None };
        assert_eq!(directory.read(ran(2)).map(|read| (read.until, read.over)), Some((9, Some(9))));
        mark_returned(&directory.attempt(call, 2), 21);
        assert_eq!(directory.read(ran(2)).map(|read| (read.until, read.over)), Some((9, None)));
        fs::write(file_of(&directory.attempt(call, 1), 20), "{\"boot").unwrap();
        let cut_off = directory.read(ran(1)).unwrap();
        assert!(cut_off.is_rebooted && cut_off.over.is_none() && cut_off.until == 0, "{cut_off:?}");
        directory.remove_ended(|_| true, None);
        assert!(directory.read(ran(2)).is_some());
        directory.remove_ended(|_| false, None);
        assert_eq!(directory.read(ran(2)), None);
        assert!(!directory.0.exists());
    }

    #[test]
    fn the_end_of_a_runtime_is_the_end_of_its_calls() {
        let place = tempfile::tempdir().unwrap();
        let session = "0198a7c0-5d6f-7a3b-9c1d-2e4f6a8b0c1e".parse().unwrap();
        let call: CallId = "0198a7c0-5d6f-7a3b-9c1d-2e4f6a8b0c1d".parse().unwrap();
        let directory = CallTimesDirectory::of(place.path(), session);
        fs::create_dir_all(&directory.0).unwrap();
        let second = 1_000_000_000;
        for (process, dead) in [(30, Some(10 * second)), (31, None)] {
            let file = file_of(&directory.runtime(), process);
            fs::write(file, serde_json::to_vec(&times(1, 20 * second, dead)).unwrap()).unwrap();
        }
        let ran = |since| AttemptRun { call, attempt: 1, elsewhere_since: since };
        let read = |since| directory.read(ran(since)).map(|read| (read.until, read.over));
        assert_eq!(read(None), None, "the call ran in this runtime");
        assert_eq!(read(Some(15 * second)), Some((20 * second, None)));
        assert_eq!(directory.supervisors(ran(Some(15 * second))), [31]);
        let file = file_of(&directory.runtime(), 31);
        fs::write(file, serde_json::to_vec(&times(1, 20 * second, Some(21 * second))).unwrap()).unwrap();
        assert_eq!(read(Some(15 * second)), Some((21 * second, Some(21 * second))));
        assert_eq!(read(Some(30 * second)), None, "both were dead before");

        directory.remove_ended(|call| call.is_none(), None);
        assert!(read(Some(15 * second)).is_some(), "a call is open");
        directory.remove_ended(|_| false, Some(30));
        assert_eq!(read(Some(5 * second)), Some((10 * second, Some(10 * second))));
        directory.remove_ended(|_| false, None);
        assert!(!directory.0.exists());
    }
}
