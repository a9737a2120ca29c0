//! What a runtime that was killed has left running.

use std::collections::HashSet;

use backstitch_core::id::CallId;
use backstitch_core::journal::ProcessStarted;
use backstitch_core::ports::ProcessError;
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};

use super::family::{Member, descendants, end_marked};
use super::group::await_gone;
use super::identity;

/// Kills the groups that are still those that were recorded, and all other processes that carry the mark of one of their calls,
/// with their descendants; and waits until they are gone. Gives how many groups and others there were. To be called before any
/// file is touched after a crash.
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
        // What is left of them is found through those who started it, as long as these live.
        let family: Vec<_> = groups.iter().flat_map(|group| descendants(*group)).collect();
        for group in &groups {
            let _ = kill_process_group(*group, Signal::KILL);
        }
        family.iter().for_each(Member::kill);
        groups.iter().try_for_each(|group| await_gone(*group))?;
        let marks = recorded.iter().filter(|process| is_of_this_boot(process));
        let marks: HashSet<_> = marks.map(|process| (process.call_id, process.group)).collect();
        Ok(groups.len() + end_marked(&marks, None)?)
    })
    .await
}

/// Kills what a call has started and what has left its group, and waits until it is gone. `since` is when the first of its processes
/// started.
pub(super) async fn end_call(call: CallId, groups: Vec<u32>, since: String) -> Result<(), ProcessError> {
    super::supervise::blocking(move || {
        let marks = groups.into_iter().map(|group| (call, group)).collect();
        end_marked(&marks, Some(&since))?;
        Ok(())
    })
    .await
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
