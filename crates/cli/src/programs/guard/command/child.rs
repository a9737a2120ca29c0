//! The process of a guarded command: it has the terminal, and gets the signals that this process gets.

use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{ExitCode, ExitStatus};

use anyhow::Context as _;
use backstitch::id::SessionId;
use rustix::process::{Pid, Signal, getpgrp, kill_process};
use rustix::termios::tcgetpgrp;
use tokio::process::{Child, Command};
use tokio::signal::unix::SignalKind;
use tokio::task::JoinHandle;

use crate::error::{CommandError, ErrorCode};
use crate::keys;
use crate::open::Signals;
use crate::open::guarded::COMMAND_VARIABLE;

/// A command that runs.
pub(super) struct GuardedChild {
    child: Child,
    forwarding: JoinHandle<()>,
}

/// A command that could not be started.
#[derive(Debug, thiserror::Error)]
#[error("`{name}` cannot be started: {error}")]
pub(super) struct StartFailure {
    name: String,
    error: io::Error,
}

impl StartFailure {
    pub(super) fn to_error(&self) -> anyhow::Error {
        CommandError::new(ErrorCode::Usage, self.to_string()).into()
    }

    /// The exit code of `env` and of shells: 127 if there is no such program, else 126.
    pub(super) fn exit_code(&self) -> ExitCode {
        ExitCode::from(if self.error.kind() == io::ErrorKind::NotFound { 127 } else { 126 })
    }
}

/// How a command ended.
#[derive(Debug, Clone, Copy)]
pub(super) struct CommandEnd(ExitStatus);

impl CommandEnd {
    pub(super) fn code(self) -> Option<i32> {
        self.0.code()
    }

    pub(super) fn signal(self) -> Option<i32> {
        self.0.signal()
    }

    /// The exit code of the command; 128 and the number of the signal if one ended it, as in shells.
    pub(super) fn exit_code(self) -> ExitCode {
        let code = self.code().or_else(|| self.signal().map(|signal| signal.saturating_add(128)));
        ExitCode::from(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
    }
}

impl fmt::Display for CommandEnd {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.code(), self.signal()) {
            (Some(code), _) => write!(formatter, "exit code {code}"),
            (None, Some(signal)) => write!(formatter, "ended by signal {signal}"),
            (None, None) => formatter.write_str("ended"),
        }
    }
}

impl GuardedChild {
    /// Starts a command with the streams and the environment of this process.
    pub(super) fn start(
        words: &[OsString],
        directory: &Path,
        session: SessionId,
    ) -> Result<Self, StartFailure> {
        let name = words.first().cloned().unwrap_or_default();
        let failed = |error| StartFailure { name: name.to_string_lossy().into_owned(), error };
        // From now on a signal does not end this process before the command.
        let signals = Signals::listen().map_err(failed)?;
        let mut command = Command::new(&name);
        command.args(words.iter().skip(1)).current_dir(directory).env(COMMAND_VARIABLE, session.to_string());
        command.envs(keys::variables()).env_remove(keys::HANDED);
        let child = command.spawn().map_err(failed)?;
        let process = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        let forwarding = tokio::spawn(forward(signals, process));
        Ok(Self { child, forwarding })
    }

    /// Completes when the command has ended.
    pub(super) async fn wait(&mut self) -> anyhow::Result<CommandEnd> {
        let ended = self.child.wait().await.context("the end of the command is unknown")?;
        // The number of the process may belong to another one from now on.
        self.forwarding.abort();
        Ok(CommandEnd(ended))
    }
}

/// Forwards signals to a process. Those of the keys of a terminal it gets from the terminal itself.
async fn forward(mut signals: Signals, process: Option<Pid>) {
    loop {
        let kind = signals.next().await;
        let is_key = kind == SignalKind::interrupt() || kind == SignalKind::quit();
        if is_key && is_in_foreground() {
            continue;
        }
        if let (Some(process), Some(signal)) = (process, Signal::from_named_raw(kind.as_raw_value())) {
            let _ = kill_process(process, signal);
        }
    }
}

/// Whether this process and the command are those that the keys of the terminal interrupt.
fn is_in_foreground() -> bool {
    let group = File::open("/dev/tty").ok().and_then(|terminal| tcgetpgrp(terminal).ok());
    group == Some(getpgrp())
}
