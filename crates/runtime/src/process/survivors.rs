//! Processes that a killed runtime has left running.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use backstitch_core::id::CallId;
use backstitch_core::journal::ProcessStarted;
use backstitch_core::ports::ProcessError;
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};

use super::family::{Member, descendants, end_descendants, end_marked};
use super::group::await_gone;
use super::identity;
use super::sandbox::remove_left;

/// How long a supervisor may take to end by itself. Only a process that has stopped it can delay it for that long.
const SUPERVISOR_PATIENCE: Duration = Duration::from_secs(5);

/// Kills the recorded groups that still run, and all other processes that carry the mark of one of their
/// calls, with their descendants, and waits until they are gone. Removes the temporary directories that the
/// calls have left. Returns the number of groups and other processes. To be called after a crash, before any file is touched.
///
/// A running group is the recorded one if its first process has the recorded start time and the system was
/// not restarted since. If that process has ended and others of the group have not, one of them has to carry
/// the mark of the call. A reused number fulfils neither.
pub async fn end_survivors<'a>(
    recorded: impl IntoIterator<Item = &'a ProcessStarted>,
) -> Result<usize, ProcessError> {
    let recorded: Vec<_> = recorded.into_iter().cloned().collect();
    if recorded.is_empty() {
        return Ok(0);
    }
    super::supervise::blocking(move || {
        let groups: Vec<_> = recorded.iter().filter_map(still_there).collect();
        let count = groups.len();
        // A supervisor adopts the orphans of its descendants, so it has to be the last to end.
        groups.iter().filter(|group| is_supervisor(**group)).for_each(|group| end_descendants(*group));
        await_ends(&groups);
        let groups: Vec<_> = recorded.iter().filter_map(still_there).collect();
        // Descendants that left a group are found as long as their parents run.
        let family: Vec<_> = groups.iter().flat_map(|group| descendants(*group)).collect();
        for group in &groups {
            let _ = kill_process_group(*group, Signal::KILL);
        }
        family.iter().for_each(Member::kill);
        groups.iter().try_for_each(|group| await_gone(*group))?;
        let marks = recorded.iter().filter(|process| is_of_this_boot(process));
        let marks: HashSet<_> = marks.map(|process| (process.call_id, process.group)).collect();
        let ended = count + end_marked(&marks, None)?;
        let calls: HashSet<_> = recorded.iter().map(|process| process.call_id).collect();
        calls.into_iter().for_each(remove_left);
        Ok(ended)
    })
    .await
}

/// Kills the processes of a call, including those that left its group, and waits until they are gone. `since`
/// is the start time of the first of them.
pub(super) async fn end_call(call: CallId, groups: Vec<u32>, since: String) -> Result<(), ProcessError> {
    super::supervise::blocking(move || {
        let marks = groups.into_iter().map(|group| (call, group)).collect();
        end_marked(&marks, Some(&since))?;
        Ok(())
    })
    .await
}

/// Waits until those of these processes have ended by themselves that are supervisors, as they do when their runtime is dead.
pub(crate) async fn await_supervisors(processes: Vec<i32>) -> Result<(), ProcessError> {
    let processes: Vec<Pid> = processes.into_iter().filter_map(Pid::from_raw).collect();
    super::supervise::blocking(move || {
        await_ends(&processes);
        Ok(())
    })
    .await
}

/// Waits until supervisors have ended by themselves, which they do once their descendants are dead: they record that moment
/// first. One that was stopped is not waited for any longer.
fn await_ends(groups: &[Pid]) {
    let began = Instant::now();
    while groups.iter().any(|group| is_supervisor(*group)) && began.elapsed() < SUPERVISOR_PATIENCE {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Whether a process says that it is a supervisor. One that lies about it is ended all the same.
#[cfg(target_os = "linux")]
pub(super) fn is_supervisor(process: Pid) -> bool {
    let words = std::fs::read(format!("/proc/{}/cmdline", process.as_raw_nonzero()));
    words.is_ok_and(|words| words.split(|byte| *byte == 0).next() == Some(super::supervisor::NAME.as_bytes()))
}

#[cfg(not(target_os = "linux"))]
fn is_supervisor(_: Pid) -> bool {
    false
}

fn is_of_this_boot(recorded: &ProcessStarted) -> bool {
    recorded.boot == identity::boot() && !recorded.boot.is_empty()
}

fn still_there(recorded: &ProcessStarted) -> Option<Pid> {
    // Numbers below 2 would mean every process there is.
    let number = i32::try_from(recorded.group).ok().filter(|number| *number > 1)?;
    let group = Pid::from_raw(number)?;
    if !is_of_this_boot(recorded) {
        return None;
    }
    test_kill_process_group(group).ok()?;
    let is_ours = match identity::started(group) {
        Some(started) => started == recorded.started,
        None => identity::members(group).into_iter().any(|member| identity::is_of(member, recorded.call_id)),
    };
    is_ours.then_some(group)
}
