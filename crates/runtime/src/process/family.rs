//! All processes of a call, including those that left its group or session.
//!
//! Every process of a call inherits its mark in its environment. So processes that left their group, as
//! daemons do, are found by the mark, together with their descendants. A process that erased its environment
//! (`env -i`) and whose parent has ended is found only as a descendant of its supervisor, which adopts it.
//!
//! A process is identified by its number and its start time, which is checked again before it is killed: a
//! reused number belongs to another process.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use backstitch_core::id::CallId;
use backstitch_core::ports::ProcessError;
use rustix::process::Pid;

use super::identity::{self, Mark, ProcessSighting};

/// How long killed processes may take to disappear. Only the kernel can delay them.
const MOST_PATIENCE: Duration = Duration::from_secs(10);

/// Longest pause between two looks.
const LONGEST_PAUSE: Duration = Duration::from_millis(20);

/// How often [`end_marked`] looks again where a process may be starting a program. That takes 13 milliseconds.
const MOST_LOOKS: usize = 6;

/// The parent of all threads of the kernel, which have no environment.
const KERNEL: i32 = 2;

/// A process that is to be ended.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Member {
    process: i32,
    started: String,
}

impl Member {
    fn of(seen: &ProcessSighting) -> Self {
        Self { process: seen.process, started: seen.started.clone() }
    }

    /// Returns its number.
    pub(super) fn process(&self) -> Option<Pid> {
        Pid::from_raw(self.process)
    }

    /// Kills the process, if the number was not reused.
    pub(super) fn kill(&self) {
        if let Some(process) = self.process() {
            identity::kill(process, &self.started);
        }
    }
}

/// Returns all descendants of a process.
pub(super) fn descendants(process: Pid) -> Vec<Member> {
    let all = identity::all_running();
    let root = process.as_raw_nonzero().get();
    let mut family = HashSet::from([root]);
    extend(&all, &mut family);
    all.iter().filter(|seen| seen.process != root && family.contains(&seen.process)).map(Member::of).collect()
}

/// Kills all descendants of a process that adopts its orphans, and waits until none is left.
pub(super) fn end_descendants(process: Pid) {
    let began = Instant::now();
    let mut calm = 0;
    // A process that was just being started may be missed once.
    while calm < 2 && began.elapsed() < MOST_PATIENCE {
        let found = descendants(process);
        calm = if found.is_empty() { calm + 1 } else { 0 };
        found.iter().for_each(Member::kill);
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Adds all processes whose parent is in a family, until there are no more.
fn extend(all: &[ProcessSighting], family: &mut HashSet<i32>) {
    loop {
        let before = family.len();
        for seen in all {
            if family.contains(&seen.parent) {
                family.insert(seen.process);
            }
        }
        if family.len() == before {
            return;
        }
    }
}

/// Kills all processes that carry the marks of one of these groups of calls, with all their descendants, and
/// waits until they are gone. Returns their number. `since` is the earliest start time of any of them.
pub(super) fn end_marked(
    groups: &HashSet<(CallId, u32)>,
    since: Option<&str>,
) -> Result<usize, ProcessError> {
    let began = Instant::now();
    let mut pause = Duration::from_micros(200);
    let mut killed = HashSet::new();
    let mut looks = 0;
    loop {
        let (found, is_certain) = marked(groups, since);
        if found.is_empty() {
            // After a kill, a process that was just being started may have been missed.
            let most = if is_certain { usize::from(!killed.is_empty()) } else { MOST_LOOKS };
            if looks >= most {
                return Ok(killed.len());
            }
            looks += 1;
            std::thread::sleep(pause);
            pause = (pause * 2).min(LONGEST_PAUSE);
            continue;
        }
        looks = 0;
        if began.elapsed() > MOST_PATIENCE {
            let group = found.first().map_or(0, |member| member.process.unsigned_abs());
            return Err(ProcessError::Survives { group });
        }
        found.iter().for_each(Member::kill);
        killed.extend(found);
        std::thread::sleep(pause);
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Returns the marked processes with their descendants, and whether these are certainly all. A process that is just starting a program has no
/// environment for a moment, and so no mark.
fn marked(groups: &HashSet<(CallId, u32)>, since: Option<&str>) -> (Vec<Member>, bool) {
    let own = std::process::id().cast_signed();
    let all = identity::all_running();
    let since: Option<u64> = since.and_then(|since| since.parse().ok());
    let may_be = |seen: &&ProcessSighting| {
        let started: Option<u64> = seen.started.parse().ok();
        seen.process != own && since.zip(started).is_none_or(|(since, started)| started >= since)
    };
    let (mut family, mut is_certain) = (HashSet::new(), true);
    for seen in all.iter().filter(may_be) {
        let Some(process) = Pid::from_raw(seen.process) else { continue };
        let Some(mark) = Mark::of(process) else {
            is_certain &= seen.parent == KERNEL || !identity::has_empty_environment(process);
            continue;
        };
        if groups.contains(&(mark.call, mark.group.unwrap_or(seen.group.unsigned_abs()))) {
            family.insert(seen.process);
        }
    }
    if family.is_empty() {
        return (Vec::new(), is_certain);
    }
    extend(&all, &mut family);
    family.remove(&own);
    let members = all.iter().filter(|seen| family.contains(&seen.process)).map(Member::of).collect();
    (members, is_certain)
}
