//! The first process of the namespaces of a confined process.
//!
//! It is a copy of the supervisor. It prepares the [`namespaces`], starts the process, and reaps all orphans there. The
//! kernel kills it when the supervisor dies, and everything in the namespaces when it ends; no process inside can kill or
//! stop it. It ends by itself when no process is left.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::Sender;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, kill_process, wait, waitpid};

use super::launch::{StartError, start};
use super::namespaces::{self, CopySide};
use super::protocol::{GO, Order, Report};

/// What the first process sends once its namespaces are ready. Before it, nothing was started.
const READY: [u8; 1] = *b"r";

/// A first process whose process runs, seen from the supervisor.
pub(super) struct FirstProcess {
    /// Its number outside of the namespaces. It leads a group.
    pub(super) id: Pid,
    reports: BufReader<UnixStream>,
}

/// An attempt to start a process in namespaces.
pub(super) enum Entry {
    Entered(FirstProcess),
    /// The system does not allow them, and nothing was started. The streams are those that were passed.
    NotAllowed([OwnedFd; 3]),
}

/// How a process has ended.
pub(super) struct ProcessEnd {
    pub(super) code: Option<i32>,
    pub(super) signal: Option<i32>,
}

impl FirstProcess {
    /// Starts a process in namespaces of its own, if the system allows that.
    pub(super) fn start(order: &Order, streams: [OwnedFd; 3]) -> Result<Entry, StartError> {
        let (mut channel, far) = UnixStream::pair()?;
        let supervisor = std::process::id();
        let id = match namespaces::copy_self() {
            Ok(CopySide::Original(id)) => id,
            Ok(CopySide::Copy(user)) => {
                drop(channel);
                let served = serve(far, order, streams, (user, supervisor));
                std::process::exit(i32::from(served.is_err()));
            }
            Err(_) => return Ok(Entry::NotAllowed(streams)),
        };
        drop(far);
        let mut ready = READY;
        if channel.read_exact(&mut ready).is_err() || ready != READY {
            end(id);
            return Ok(Entry::NotAllowed(streams));
        }
        drop(streams);
        let started = channel.write_all(&GO).map_err(StartError::System).and_then(|()| {
            let mut reports = BufReader::new(channel);
            match next_report(&mut reports) {
                Some(Report::Started { .. }) => Ok(Self { id, reports }),
                Some(report) => Err(StartError::of(report)),
                None => Err(StartError::System(io::Error::other("the first process has ended"))),
            }
        });
        if started.is_err() {
            end(id);
        }
        started.map(Entry::Entered)
    }

    /// Waits for the end of the process. If the first process was killed, so was the process.
    pub(super) fn await_end(&mut self) -> ProcessEnd {
        match next_report(&mut self.reports) {
            Some(Report::Ended { code, signal }) => ProcessEnd { code, signal },
            _ => ProcessEnd { code: None, signal: Some(Signal::KILL.as_raw()) },
        }
    }

    /// Notifies a receiver when no process is left.
    pub(super) fn notify_end(mut self, receiver: Sender<()>) -> io::Result<()> {
        std::thread::Builder::new().name("first".to_owned()).spawn(move || {
            while next_report(&mut self.reports).is_some() {}
            let _ = receiver.send(());
        })?;
        Ok(())
    }
}

/// Tries to enter namespaces, and starts nothing. Returns whether that works.
pub(super) fn can_enter() -> bool {
    let Ok((mut channel, far)) = UnixStream::pair() else { return false };
    match namespaces::copy_self() {
        Ok(CopySide::Original(id)) => {
            drop(far);
            let mut ready = READY;
            let is_ready = channel.read_exact(&mut ready).is_ok();
            end(id);
            is_ready
        }
        Ok(CopySide::Copy(user)) => {
            let is_ready =
                namespaces::prepare(user, &Order::default()).and_then(|()| (&far).write_all(&READY));
            std::process::exit(i32::from(is_ready.is_err()));
        }
        Err(_) => false,
    }
}

/// Kills and reaps a first process, and with it everything in its namespaces.
fn end(id: Pid) {
    let _ = kill_process(id, Signal::KILL);
    while waitpid(Some(id), WaitOptions::empty()).is_err_and(|error| error == Errno::INTR) {}
}

fn next_report(reports: &mut BufReader<UnixStream>) -> Option<Report> {
    let mut line = String::new();
    reports.read_line(&mut line).ok().filter(|count| *count > 0)?;
    serde_json::from_str(&line).ok()
}

/// Runs the first process: starts the process once the supervisor has seen that the namespaces are ready, and reaps
/// what ends, until nothing is left.
fn serve(
    mut channel: UnixStream,
    order: &Order,
    streams: [OwnedFd; 3],
    (user, supervisor): (Option<(u32, u32)>, u32),
) -> io::Result<()> {
    let _ = rustix::thread::set_name(c"call-first");
    namespaces::prepare(user, order)?;
    channel.write_all(&READY)?;
    let mut go = GO;
    channel.read_exact(&mut go)?;
    let process = match start(order, streams, supervisor) {
        Ok(process) => process,
        Err(error) => {
            error.report().send(&channel);
            return Ok(());
        }
    };
    Report::Started { process: process.as_raw_nonzero().get(), started: String::new() }.send(&channel);
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((ended, status))) if ended == process => {
                let (code, signal) = (status.exit_status(), status.terminating_signal());
                Report::Ended { code, signal }.send(&channel);
            }
            Ok(_) | Err(Errno::INTR) => {}
            // There are no children left.
            Err(_) => return Ok(()),
        }
    }
}
