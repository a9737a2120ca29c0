//! Who a process is, so that a number that was given out again is not mistaken for it.
//!
//! A process is known by its number, the moment at which it started, and the start of the system which that moment belongs
//! to. What it starts inherits a mark in its environment ([`MARK`]), by which a group is known whose first process has ended.

use std::sync::OnceLock;

use backstitch_core::id::CallId;
use rustix::process::Pid;

/// The variable that tells every process of a call which call it is of.
pub(super) const MARK: &str = "BACKSTITCH_CALL";

/// Which start of the system this is.
pub(super) fn boot() -> &'static str {
    static BOOT: OnceLock<String> = OnceLock::new();
    BOOT.get_or_init(|| system::boot().unwrap_or_default())
}

/// When a process started; none when there is no such process.
pub(super) fn started(process: Pid) -> Option<String> {
    system::status(process.as_raw_nonzero().get()).map(|status| status.started)
}

/// The processes of a group that have not ended.
pub(super) fn members(group: Pid) -> Vec<Pid> {
    let group = group.as_raw_nonzero().get();
    let here = |pid: &i32| {
        let status = system::status(*pid);
        status.is_some_and(|status| status.group == group && !status.has_ended)
    };
    system::all().into_iter().filter(here).filter_map(Pid::from_raw).collect()
}

/// Whether a process carries the mark of a call.
pub(super) fn is_of(process: Pid, call: CallId) -> bool {
    system::environment(process.as_raw_nonzero().get())
        .is_some_and(|variables| variables.contains(&format!("{MARK}={call}")))
}

struct Status {
    group: i32,
    has_ended: bool,
    started: String,
}

#[cfg(target_os = "linux")]
mod system {
    use std::fs;

    use super::Status;

    pub(super) fn boot() -> Option<String> {
        let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        Some(text.trim().to_owned())
    }

    /// The fields are those of `proc_pid_stat(5)`; the second one, the name, may hold anything but ends with the last `)`.
    pub(super) fn status(process: i32) -> Option<Status> {
        let bytes = fs::read(format!("/proc/{process}/stat")).ok()?;
        let end = bytes.iter().rposition(|byte| *byte == b')')?;
        let text = str::from_utf8(bytes.get(end + 1..)?).ok()?;
        let mut fields = text.split_ascii_whitespace();
        let state = fields.next()?;
        let group = fields.nth(1)?.parse().ok()?;
        let started = fields.nth(16)?.to_owned();
        Some(Status { group, has_ended: matches!(state, "Z" | "X" | "x"), started })
    }

    pub(super) fn all() -> Vec<i32> {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
    }

    pub(super) fn environment(process: i32) -> Option<Vec<String>> {
        let bytes = fs::read(format!("/proc/{process}/environ")).ok()?;
        Some(bytes.split(|byte| *byte == 0).map(|one| String::from_utf8_lossy(one).into_owned()).collect())
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use std::process::Command;

    use super::Status;

    fn told(program: &str, arguments: &[&str]) -> Option<String> {
        let output = Command::new(program).args(arguments).env("LC_ALL", "C").output().ok()?;
        String::from_utf8(output.stdout).ok().filter(|text| !text.trim().is_empty())
    }

    pub(super) fn boot() -> Option<String> {
        told("sysctl", &["-n", "kern.bootsessionuuid"]).map(|text| text.trim().to_owned())
    }

    pub(super) fn status(process: i32) -> Option<Status> {
        let columns = ["-o", "pgid=", "-o", "state=", "-o", "lstart=", "-p"];
        let text = told("ps", &[&columns[..], &[process.to_string().as_str()]].concat())?;
        let mut fields = text.split_ascii_whitespace();
        let group = fields.next()?.parse().ok()?;
        let has_ended = fields.next()?.starts_with('Z');
        Some(Status { group, has_ended, started: fields.collect::<Vec<_>>().join(" ") })
    }

    pub(super) fn all() -> Vec<i32> {
        let text = told("ps", &["-A", "-o", "pid="]).unwrap_or_default();
        text.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect()
    }

    /// It is not told, so a group whose first process has ended is not known for ours and is left alone.
    pub(super) fn environment(_: i32) -> Option<Vec<String>> {
        None
    }
}
