//! The process that drives a session, and taking the session over from it.

use std::time::Duration;

use anyhow::{Context as _, bail};
use backstitch::code::ErrorCode;
use backstitch::id::SessionId;
use backstitch::ports::{ClaimMode, Owner, Process, StoreError};

use super::place::{OpenStore, short};
use crate::common::Common;
use crate::error::CommandError;

/// Time within which a killed process has to release its session.
const PATIENCE: Duration = Duration::from_secs(10);

/// What to do if another process drives the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WhenDriven {
    /// Return an error that names the process.
    Refuse,
    /// Kill the process.
    TakeOver,
}

/// Ensures that no process drives a session, before its files are opened.
pub(crate) async fn set_free(
    common: &Common,
    place: &OpenStore,
    session: SessionId,
    when: WhenDriven,
) -> anyhow::Result<()> {
    let Some((owner, process)) = driver(place, session).await? else { return Ok(()) };
    if when == WhenDriven::Refuse {
        let id = short(session);
        let hint = format!(
            "`{}` follows it, `{}` ends that process and continues here",
            common.hint(format_args!("log {id} -f")),
            common.hint(format_args!("resume {id} --take-over"))
        );
        let message = format!("session {id} is driven by {owner}");
        return Err(CommandError::new(ErrorCode::SessionHeld, message).with_hint(hint).into());
    }
    // A process on another machine only loses its claim: it can record nothing more.
    let Some(process) = process.filter(|process| process.host == host()) else { return Ok(()) };
    end(&process).map_err(|error| {
        let message = format!("{owner} drives session {session} and cannot be ended: {error:#}");
        CommandError::new(ErrorCode::SessionHeld, message)
    })?;
    let started = tokio::time::Instant::now();
    while place.store.holder(session).await?.is_some() {
        if started.elapsed() > PATIENCE {
            let message = format!("{owner} was killed and still holds session {session}");
            return Err(CommandError::new(ErrorCode::SessionHeld, message).into());
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Ok(())
}

/// Returns the owner and the process that drive a session.
async fn driver(place: &OpenStore, session: SessionId) -> anyhow::Result<Option<(Owner, Option<Process>)>> {
    let Some(owner) = place.store.holder(session).await? else { return Ok(None) };
    match place.store.claim(session, owner.clone(), ClaimMode::IfFree).await {
        Err(StoreError::Held { owner, process, .. }) => Ok(Some((owner, process))),
        // The claim was released since.
        Ok(claim) => {
            place.store.release(claim).await?;
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Kills the process that made a claim. Because process ids are reused, the process must have started before
/// the claim was made.
#[cfg(target_os = "linux")]
fn end(process: &Process) -> anyhow::Result<()> {
    use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

    let number = i32::try_from(process.pid).ok().and_then(Pid::from_raw);
    let number = number.with_context(|| format!("{} is not a process", process.pid))?;
    // The descriptor refers to this process even if its id is reused.
    let opened = match pidfd_open(number, PidfdFlags::empty()) {
        Ok(opened) => opened,
        Err(rustix::io::Errno::SRCH) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    let Some(started) = started(process.pid) else { return Ok(()) };
    let since = process.since.unix_micros() / 1_000_000;
    if started > since + CLOCK_SLACK {
        bail!("process {} is another one by now", process.pid);
    }
    match pidfd_send_signal(&opened, Signal::KILL) {
        Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(not(target_os = "linux"))]
fn end(_: &Process) -> anyhow::Result<()> {
    bail!("end it yourself, then resume the session")
}

/// Rounding of the boot time, in seconds.
#[cfg(target_os = "linux")]
const CLOCK_SLACK: i64 = 2;

/// Returns the start time of a process in seconds since 1970; `None` if it does not exist.
#[cfg(target_os = "linux")]
fn started(process: u32) -> Option<i64> {
    let stat = std::fs::read(format!("/proc/{process}/stat")).ok()?;
    // The name of the program may hold any characters, but ends with the last parenthesis.
    let end = stat.iter().rposition(|byte| *byte == b')')?;
    let fields = str::from_utf8(stat.get(end + 1..)?).ok()?;
    let ticks: u64 = fields.split_ascii_whitespace().nth(19)?.parse().ok()?;
    let system = std::fs::read_to_string("/proc/stat").ok()?;
    let booted = system.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse::<i64>().ok()?;
    let seconds = ticks / rustix::param::clock_ticks_per_second();
    Some(booted + i64::try_from(seconds).ok()?)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use backstitch::time::Timestamp;

    use super::*;

    fn now() -> i64 {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
    }

    #[test]
    fn a_process_is_ended_only_if_it_was_there_when_the_claim_was_made() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let claim = |micros: i64| Process {
            host: host(),
            pid: child.id(),
            since: Timestamp::from_unix_micros(micros).unwrap(),
        };
        let long_ago = claim(now() - 3_600_000_000);
        assert!(end(&long_ago).unwrap_err().to_string().contains("another one"));
        let just_now = claim(now());
        assert!(child.try_wait().unwrap().is_none(), "it was left alone");
        end(&just_now).unwrap();
        assert!(!child.wait().unwrap().success());
        end(&just_now).unwrap();
    }
}
