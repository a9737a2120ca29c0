//! What a runtime that was killed has left running.

use backstitch_core::journal::ProcessStarted;
use backstitch_core::ports::ProcessError;
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};

use super::group::await_gone;
use super::identity;

/// Kills the groups that are still those that were recorded, and waits until they are gone. Gives how many there were. To be
/// called before any file is touched after a crash.
///
/// A group is the one that was recorded when its first process started then, since the same start of the system; or, when that
/// one has ended and others of the group have not, when one of them carries the mark of the call. A number that was given out
/// again fulfils neither.
pub async fn end_survivors<'a>(
    recorded: impl IntoIterator<Item = &'a ProcessStarted>,
) -> Result<usize, ProcessError> {
    let recorded: Vec<_> = recorded.into_iter().cloned().collect();
    if recorded.is_empty() {
        return Ok(0);
    }
    super::supervise::blocking(move || {
        let groups: Vec<_> = recorded.iter().filter_map(still_there).collect();
        for group in &groups {
            let _ = kill_process_group(*group, Signal::KILL);
        }
        groups.iter().try_for_each(|group| await_gone(*group))?;
        Ok(groups.len())
    })
    .await
}

fn still_there(recorded: &ProcessStarted) -> Option<Pid> {
    // Numbers below 2 would mean every process there is.
    let number = i32::try_from(recorded.group).ok().filter(|number| *number > 1)?;
    let group = Pid::from_raw(number)?;
    if recorded.boot != identity::boot() || recorded.boot.is_empty() {
        return None;
    }
    test_kill_process_group(group).ok()?;
    let is_ours = match identity::started(group) {
        Some(started) => started == recorded.started,
        None => identity::members(group).into_iter().any(|member| identity::is_of(member, recorded.call_id)),
    };
    is_ours.then_some(group)
}
