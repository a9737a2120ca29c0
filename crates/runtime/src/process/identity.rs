//! Identity of processes, so that a reused number is not mistaken for an earlier process.
//!
//! A process is identified by its number, its start time, and the boot of the system that the time belongs
//! to. Its descendants inherit a mark in their environment ([`MARK`]). The mark identifies a group whose
//! first process has ended, and a process that has left its group.

use std::sync::OnceLock;

use backstitch_core::id::CallId;
use rustix::process::Pid;

/// The variable that identifies the call of a process.
pub(super) const MARK: &str = "BACKSTITCH_CALL";

/// The variable that identifies the group in which a process was started, even if the process has left it. A
/// session that is repeated has the same calls, but its processes are not those of the first one.
pub(super) const GROUP_MARK: &str = "BACKSTITCH_GROUP";

/// Returns an id of the current boot of the system.
pub(super) fn boot() -> &'static str {
    static BOOT: OnceLock<String> = OnceLock::new();
    BOOT.get_or_init(|| system::boot().unwrap_or_default())
}

/// Returns the start time of a process, or `None` if there is no such process.
pub(super) fn started(process: Pid) -> Option<String> {
    system::status(process.as_raw_nonzero().get()).map(|status| status.started)
}

/// Returns the processes of a group that have not ended.
pub(super) fn members(group: Pid) -> Vec<Pid> {
    let group = group.as_raw_nonzero().get();
    let here = |pid: &i32| {
        let status = system::status(*pid);
        status.is_some_and(|status| status.group == group && !status.has_ended)
    };
    system::all().into_iter().filter(here).filter_map(Pid::from_raw).collect()
}

/// True if a process carries the mark of a call.
pub(super) fn is_of(process: Pid, call: CallId) -> bool {
    Mark::of(process).is_some_and(|mark| mark.call == call)
}

/// True if the environment of a process can be read and is empty.
pub(super) fn has_empty_environment(process: Pid) -> bool {
    system::environment(process.as_raw_nonzero().get()).is_some_and(|environment| environment.is_empty())
}

/// The marks that a process has inherited.
pub(super) struct Mark {
    pub(super) call: CallId,
    /// The group that it was started in. `None` before the program runs, and if the process has erased it.
    pub(super) group: Option<u32>,
}

impl Mark {
    pub(super) fn of(process: Pid) -> Option<Self> {
        let environment = system::environment(process.as_raw_nonzero().get())?;
        let value = |name: &str| {
            let mut variables = environment.split(|byte| *byte == 0);
            let value = variables.find_map(|one| one.strip_prefix(name.as_bytes())?.strip_prefix(b"="))?;
            str::from_utf8(value).ok()
        };
        let group = value(GROUP_MARK).and_then(|group| group.parse().ok());
        Some(Self { call: value(MARK)?.parse().ok()?, group })
    }
}

/// A process that has not ended.
pub(super) struct ProcessSighting {
    pub(super) process: i32,
    pub(super) parent: i32,
    pub(super) group: i32,
    pub(super) started: String,
}

/// Returns all processes that have not ended.
pub(super) fn all_running() -> Vec<ProcessSighting> {
    let seen = system::all().into_iter().filter_map(|process| {
        let status = system::status(process).filter(|status| !status.has_ended)?;
        Some(ProcessSighting { process, parent: status.parent, group: status.group, started: status.started })
    });
    seen.collect()
}

/// Kills a process, if it has this start time.
pub(super) fn kill(process: Pid, started: &str) {
    system::kill(process, started);
}

struct Status {
    parent: i32,
    group: i32,
    has_ended: bool,
    started: String,
}

#[cfg(target_os = "linux")]
mod system {
    use std::fs;

    use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal};

    use super::Status;

    pub(super) fn boot() -> Option<String> {
        let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        Some(text.trim().to_owned())
    }

    /// Reads the fields of `proc_pid_stat(5)`. The second one, the name, may contain anything, and ends with
    /// the last `)`.
    pub(super) fn status(process: i32) -> Option<Status> {
        let bytes = fs::read(format!("/proc/{process}/stat")).ok()?;
        let end = bytes.iter().rposition(|byte| *byte == b')')?;
        let text = str::from_utf8(bytes.get(end + 1..)?).ok()?;
        let mut fields = text.split_ascii_whitespace();
        let state = fields.next()?;
        let parent = fields.next()?.parse().ok()?;
        let group = fields.next()?.parse().ok()?;
        let started = fields.nth(16)?.to_owned();
        Some(Status { parent, group, has_ended: matches!(state, "Z" | "X" | "x"), started })
    }

    pub(super) fn all() -> Vec<i32> {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
    }

    pub(super) fn environment(process: i32) -> Option<Vec<u8>> {
        fs::read(format!("/proc/{process}/environ")).ok()
    }

    /// Opens a handle before the start time is checked. So the signal reaches the checked process or none.
    pub(super) fn kill(process: Pid, started: &str) {
        let handle = pidfd_open(process, PidfdFlags::empty());
        if status(process.as_raw_nonzero().get()).is_none_or(|status| status.started != started) {
            return;
        }
        let _ = match handle {
            Ok(handle) => pidfd_send_signal(handle, Signal::KILL),
            // The kernel has no handles.
            Err(rustix::io::Errno::NOSYS) => kill_process(process, Signal::KILL),
            Err(error) => Err(error),
        };
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use std::process::Command;

    use rustix::process::{Pid, Signal, kill_process};

    use super::Status;

    fn query_program(program: &str, arguments: &[&str]) -> Option<String> {
        let output = Command::new(program).args(arguments).env("LC_ALL", "C").output().ok()?;
        String::from_utf8(output.stdout).ok().filter(|text| !text.trim().is_empty())
    }

    pub(super) fn boot() -> Option<String> {
        query_program("sysctl", &["-n", "kern.bootsessionuuid"]).map(|text| text.trim().to_owned())
    }

    pub(super) fn status(process: i32) -> Option<Status> {
        let columns = ["-o", "ppid=", "-o", "pgid=", "-o", "state=", "-o", "lstart=", "-p"];
        let text = query_program("ps", &[&columns[..], &[process.to_string().as_str()]].concat())?;
        let mut fields = text.split_ascii_whitespace();
        let parent = fields.next()?.parse().ok()?;
        let group = fields.next()?.parse().ok()?;
        let has_ended = fields.next()?.starts_with('Z');
        Some(Status { parent, group, has_ended, started: fields.collect::<Vec<_>>().join(" ") })
    }

    pub(super) fn all() -> Vec<i32> {
        let text = query_program("ps", &["-A", "-o", "pid="]).unwrap_or_default();
        text.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect()
    }

    /// Not available here. So a group whose first process has ended cannot be identified and is left alone,
    /// and so is a process that has left its group.
    pub(super) fn environment(_: i32) -> Option<Vec<u8>> {
        None
    }

    pub(super) fn kill(process: Pid, started: &str) {
        if status(process.as_raw_nonzero().get()).is_some_and(|status| status.started == started) {
            let _ = kill_process(process, Signal::KILL);
        }
    }
}
