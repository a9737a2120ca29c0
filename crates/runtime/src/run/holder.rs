//! The process that holds a session, and ending it.
//!
//! A process on this machine is killed, and its claim ends with it: the next one continues as after any crash. A process
//! elsewhere cannot be ended from here. It loses its claim, so it records nothing more. This process is never ended.

use std::time::Duration;

use backstitch_core::id::SessionId;
use backstitch_core::ports::{ClaimMode, Owner, Process, StoreError};
use tokio::time::Instant;

use crate::error::{Result, RuntimeError};
use crate::runtime::Runtime;

/// Time within which a killed process has to release its session.
const PATIENCE: Duration = Duration::from_secs(10);

/// Interval at which it is checked.
const CHECK_EVERY: Duration = Duration::from_millis(10);

/// The holder of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionHolder {
    /// Its name, for people.
    pub owner: Owner,
    /// Its process, if the store knows it.
    pub process: Option<Process>,
}

impl Runtime {
    /// Returns the holder of a session; `None` if no process drives it.
    pub async fn holder(&self, session: SessionId) -> Result<Option<SessionHolder>> {
        let runtime = self.clone();
        self.in_task(async move { runtime.find_holder(session).await }).await
    }

    /// Ends the process that holds a session, if there is one: on this machine it is killed, elsewhere it loses its claim.
    /// Fails with [`RuntimeError::HolderNotEnded`] if it cannot be ended, or if it is this process.
    pub async fn end_holder(&self, session: SessionId) -> Result<()> {
        let runtime = self.clone();
        self.in_task(async move {
            let Some(SessionHolder { owner, process }) = runtime.find_holder(session).await? else {
                return Ok(());
            };
            let Some(process) = process.filter(is_here) else { return runtime.take_claim(session).await };
            let not_ended = |reason: String| RuntimeError::HolderNotEnded { session, owner, reason };
            if process.pid == std::process::id() {
                return Err(not_ended("it is this process".to_owned()));
            }
            if let Err(reason) = system::end(&process) {
                return Err(not_ended(reason));
            }
            let until = Instant::now() + PATIENCE;
            while runtime.store().holder(session).await?.is_some() {
                if Instant::now() > until {
                    return Err(not_ended("it was killed, and still holds it".to_owned()));
                }
                tokio::time::sleep(CHECK_EVERY).await;
            }
            Ok(())
        })
        .await
    }

    async fn find_holder(&self, session: SessionId) -> Result<Option<SessionHolder>> {
        let store = self.store();
        if store.holder(session).await?.is_none() {
            return Ok(None);
        }
        // Only a refused claim names the process.
        match store.claim(session, self.owner().clone(), ClaimMode::IfFree).await {
            Err(StoreError::Held { owner, process, .. }) => Ok(Some(SessionHolder { owner, process })),
            // It was released since.
            Ok(claim) => {
                store.release(claim).await?;
                Ok(None)
            }
            Err(error) => Err(RuntimeError::Store(error)),
        }
    }

    /// Takes the claim from the holder, and releases the session.
    async fn take_claim(&self, session: SessionId) -> Result<()> {
        let claim = self.store().claim(session, self.owner().clone(), ClaimMode::TakeOver).await?;
        self.store().release(claim).await.map_err(RuntimeError::Store)
    }
}

#[cfg(unix)]
fn is_here(process: &Process) -> bool {
    process.host == rustix::system::uname().nodename().to_string_lossy()
}

#[cfg(not(unix))]
fn is_here(_: &Process) -> bool {
    false
}

#[cfg(target_os = "linux")]
mod system {
    use backstitch_core::ports::Process;
    use rustix::io::Errno;
    use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

    /// Rounding of the boot time, in seconds.
    const CLOCK_SLACK: i64 = 2;

    /// Kills the process that made a claim, and returns why that is not possible. Because process ids are reused, the process
    /// must have started before the claim was made.
    pub(super) fn end(process: &Process) -> Result<(), String> {
        let number = i32::try_from(process.pid).ok().and_then(Pid::from_raw);
        let number = number.ok_or_else(|| format!("{} is not a process", process.pid))?;
        // The descriptor refers to this process even if its id is reused.
        let opened = match pidfd_open(number, PidfdFlags::empty()) {
            Ok(opened) => opened,
            Err(Errno::SRCH) => return Ok(()),
            Err(error) => return Err(error.to_string()),
        };
        let Some(started) = started(process.pid) else { return Ok(()) };
        let since = process.since.unix_micros() / 1_000_000;
        if started > since + CLOCK_SLACK {
            return Err(format!("process {} is another one by now", process.pid));
        }
        match pidfd_send_signal(&opened, Signal::KILL) {
            Ok(()) | Err(Errno::SRCH) => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Returns the start time of a process in seconds since 1970; `None` if it does not exist.
    fn started(process: u32) -> Option<i64> {
        let stat = std::fs::read(format!("/proc/{process}/stat")).ok()?;
        // The name of the program may hold any characters, but ends with the last parenthesis.
        let end = stat.iter().rposition(|byte| *byte == b')')?;
        let fields = str::from_utf8(stat.get(end + 1..)?).ok()?;
        let ticks: u64 = fields.split_ascii_whitespace().nth(19)?.parse().ok()?;
        let system = std::fs::read_to_string("/proc/stat").ok()?;
        let booted = system.lines().find_map(|line| line.strip_prefix("btime "))?;
        let seconds = ticks / rustix::param::clock_ticks_per_second();
        Some(booted.trim().parse::<i64>().ok()? + i64::try_from(seconds).ok()?)
    }

    #[cfg(test)]
    mod tests {
        use backstitch_core::time::Timestamp;

        use super::*;

        #[test]
        fn a_process_is_ended_only_if_it_was_there_when_the_claim_was_made() {
            let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
            let now = i64::try_from(now.as_micros()).unwrap();
            let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
            let claim = |micros: i64| Process {
                host: "here".to_owned(),
                pid: child.id(),
                since: Timestamp::from_unix_micros(micros).unwrap(),
            };
            let (long_ago, just_now) = (claim(now - 3_600_000_000), claim(now));
            assert!(end(&long_ago).unwrap_err().contains("another one"));
            assert!(child.try_wait().unwrap().is_none(), "it was left alone");
            end(&just_now).unwrap();
            assert!(!child.wait().unwrap().success());
            end(&just_now).unwrap();
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use backstitch_core::ports::Process;

    pub(super) fn end(_: &Process) -> Result<(), String> {
        Err("end it yourself, then resume the session".to_owned())
    }
}
