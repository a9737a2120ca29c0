//! When the processes of a call ran, by the clock of the file system that they wrote to.
//!
//! After a crash, the files that an interrupted call has changed are restored, and what others changed later stays. The two are told
//! apart by the times of files. So the supervisor of a process keeps a file about it beside the store: when the process
//! started, when it was last seen to run, and when its last descendant was dead. The times are those that the file system
//! of the workspace gives to a file that changes at that moment: they are ordered with the times of all other files there,
//! whatever the clock of this machine says.
//!
//! A call that runs in the runtime itself for longer than a moment has a supervisor without a process, which keeps such a file too.
//!
//! There is one file per process, named by call, attempt and process in a directory per session. The runtime marks it when the process
//! has returned to the handler of its call, which may change files itself from then on. Files about calls that have ended are
//! removed when the next process of the session starts, and when the session is released.

use std::fs;
use std::path::{Path, PathBuf};

use backstitch_core::id::{CallId, SessionId};
use serde::{Deserialize, Serialize};

/// The directory of all these files, in the runtime's own directory.
const DIRECTORY: &str = "calls";

/// The end of the name of a file about a process that has returned to its call.
const RETURNED: &str = "returned";

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
        Self(own.join(DIRECTORY).join(session.to_string()))
    }

    /// Returns the beginning of the paths for the processes of an attempt.
    pub(crate) fn attempt(&self, call: CallId, attempt: u32) -> PathBuf {
        self.0.join(format!("{call}-{attempt}"))
    }

    /// Returns when an attempt of a call ran. `None` if nothing is known about it: it started no process, or none with a
    /// supervisor.
    pub(crate) fn read(&self, call: CallId, attempt: u32) -> Option<CallTimes> {
        let prefix = format!("{call}-{attempt}.");
        let mut processes = Vec::new();
        for (path, name) in self.files() {
            if name.starts_with(&prefix) {
                // A file that was cut off by a power loss says nothing, not even when the process started.
                let read = fs::read(&path).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
                let times: ProcessTimes = read.unwrap_or_default();
                processes.push((times, name.ends_with(RETURNED)));
            }
        }
        CallTimes::of(&processes)
    }

    /// Returns the processes of an attempt that have not returned to it, and the supervisors that watch it.
    pub(crate) fn processes(&self, call: CallId, attempt: u32) -> Vec<i32> {
        let prefix = format!("{call}-{attempt}.");
        let names = self.files().into_iter().map(|(_, name)| name);
        names.filter_map(|name| name.strip_prefix(&prefix)?.parse().ok()).collect()
    }

    /// Removes what is known about calls that have ended.
    pub(crate) fn remove_ended(&self, is_open: impl Fn(CallId) -> bool) {
        for (path, name) in self.files() {
            let call: Option<CallId> = name.get(..CALL_ID_LENGTH).and_then(|call| call.parse().ok());
            if call.is_some_and(|call| !is_open(call)) {
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

/// When the processes of an attempt ran.
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
        let end = |times: &ProcessTimes| times.dead.unwrap_or(times.alive);
        let (last, has_returned) = processes.iter().max_by_key(|(times, _)| end(times))?;
        // A process that was killed together with the runtime is the end of the call: its supervisor saw the runtime die before. So did
        // the one that watched the call.
        // After one that has returned, the handler of the call continued until a time that nothing shows.
        let are_all_dead = processes.iter().all(|(times, returned)| *returned || times.dead.is_some());
        let over = last.dead.filter(|_| are_all_dead && !has_returned);
        let is_rebooted = processes.iter().any(|(times, _)| !times.is_of_this_boot());
        Some(Self { until: end(last), over, is_rebooted })
    }
}

impl ProcessTimes {
    #[cfg(unix)]
    fn is_of_this_boot(&self) -> bool {
        self.boot == super::identity::boot()
    }

    #[cfg(not(unix))]
    fn is_of_this_boot(&self) -> bool {
        true
    }
}

#[cfg(test)]
#[cfg(unix)]
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
        assert_eq!(directory.read(call, 2).map(|read| (read.until, read.over)), Some((9, Some(9))));
        mark_returned(&directory.attempt(call, 2), 21);
        assert_eq!(directory.read(call, 2).map(|read| (read.until, read.over)), Some((9, None)));
        fs::write(file_of(&directory.attempt(call, 1), 20), "{\"boot").unwrap();
        let cut_off = directory.read(call, 1).unwrap();
        assert!(cut_off.is_rebooted && cut_off.over.is_none() && cut_off.until == 0, "{cut_off:?}");
        directory.remove_ended(|_| true);
        assert!(directory.read(call, 2).is_some());
        directory.remove_ended(|_| false);
        assert_eq!(directory.read(call, 2), None);
        assert!(!directory.0.exists());
    }
}
