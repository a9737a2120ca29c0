//! The person at the terminal of this process.

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use backstitch::ports::BoxFuture;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{QueueSelector, tcflush};
use tokio::sync::Notify;

use super::Person;
use crate::terminal::{self, Text};

/// Maximum length of an answer in bytes.
const LONGEST_ANSWER: usize = 1 << 20;

/// Interval at which a reader checks whether it is still wanted.
const LOOK_EVERY: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// Signals that arrive while a person is asked. They leave the question open instead of stopping a run.
#[derive(Debug, Default)]
pub(crate) struct Interrupts {
    is_asking: AtomicBool,
    arrived: Notify,
}

impl Interrupts {
    /// Takes a signal. Returns false if nobody is asked, so that the signal is for the run.
    pub(crate) fn take(&self) -> bool {
        let is_asking = self.is_asking.load(Ordering::SeqCst);
        if is_asking {
            self.arrived.notify_one();
        }
        is_asking
    }

    /// Marks that a person is asked, until the guard is dropped.
    pub(crate) fn asking(&self) -> AskingGuard<'_> {
        self.is_asking.store(true, Ordering::SeqCst);
        AskingGuard(self)
    }
}

/// Ends the time in which a person is asked.
pub(crate) struct AskingGuard<'a>(&'a Interrupts);

impl Drop for AskingGuard<'_> {
    fn drop(&mut self) {
        self.0.is_asking.store(false, Ordering::SeqCst);
    }
}

/// Asks on standard error, and reads from standard input.
pub(crate) struct TerminalPerson {
    interrupts: Arc<Interrupts>,
}

impl TerminalPerson {
    pub(crate) fn new(interrupts: Arc<Interrupts>) -> Self {
        Self { interrupts }
    }
}

impl Person for TerminalPerson {
    fn show(&mut self, lines: &[Text]) {
        for line in lines {
            terminal::error_line(line);
        }
    }

    fn answer<'a>(&'a mut self, question: &'a str) -> BoxFuture<'a, Option<String>> {
        Box::pin(async move {
            // What was typed before the question was shown does not answer it.
            let _ = tcflush(std::io::stdin(), QueueSelector::IFlush);
            let _asking = terminal::status::ask();
            terminal::to_stderr(format_args!("{question}"));
            let _ = std::io::stderr().flush();
            let line = tokio::select! {
                biased;
                () = self.interrupts.arrived.notified() => None,
                line = answer_line() => line,
            };
            if line.is_none() {
                eprintln!("");
            }
            line
        })
    }
}

/// Reads a line in a thread, which ends when this is dropped.
async fn answer_line() -> Option<String> {
    let (send, line) = tokio::sync::oneshot::channel();
    tokio::task::spawn_blocking(move || {
        let line = read_line(|| send.is_closed());
        let _ = send.send(line);
    });
    line.await.ok().flatten()
}

/// Reads a line from standard input, without its end. Returns `None` at its end, after an error, or when it is
/// no longer wanted.
fn read_line(is_over: impl Fn() -> bool) -> Option<String> {
    let input = std::io::stdin();
    let mut line = Vec::new();
    loop {
        let mut ready = [PollFd::new(&input, PollFlags::IN)];
        match poll(&mut ready, Some(&LOOK_EVERY)) {
            _ if is_over() => return None,
            Ok(0) | Err(rustix::io::Errno::INTR) => continue,
            Ok(_) => {}
            Err(_) => return None,
        }
        let mut bytes = [0; 4096];
        match rustix::io::read(&input, &mut bytes) {
            Ok(0) => return None,
            Ok(count) => line.extend_from_slice(&bytes[..count]),
            Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => continue,
            Err(_) => return None,
        }
        if line.len() > LONGEST_ANSWER {
            return None;
        }
        // A terminal returns whole lines. One without a line end was ended by Ctrl-D.
        if let Some(end) = line.iter().position(|byte| *byte == b'\n') {
            line.truncate(end);
            return Some(String::from_utf8_lossy(&line).into_owned());
        }
    }
}
