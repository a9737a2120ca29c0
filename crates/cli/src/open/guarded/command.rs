//! Sessions of guarded commands for the other commands: what a rewind has to check, and what cannot be continued.

use std::path::Path;

use backstitch::host::observed_origin;
use backstitch::view::JournalView;
use serde_json::Value;

use super::processes;
use super::running::RunningGuard;
use super::tags::{COMMAND, COMMAND_VARIABLE, PROGRAM};
use crate::common::quoted;
use crate::error::{CommandError, ErrorCode};
use crate::open::place::short;

/// A session that records a command.
pub(crate) struct CommandSession<'a> {
    view: &'a JournalView,
}

impl<'a> CommandSession<'a> {
    /// Returns the session if it records a command.
    pub(crate) fn of(view: &'a JournalView) -> Option<Self> {
        (view.created().tags.get(PROGRAM).map(String::as_str) == Some(COMMAND)).then_some(Self { view })
    }

    /// Returns the command line that runs the command again, if it is known.
    pub(crate) fn again(&self) -> Option<String> {
        let words =
            self.view.evaluations().find_map(|evaluation| observed_origin(evaluation)?.get("command"));
        let line = command_line(words?);
        Some(format!("backstitch guard -- {line}")).filter(|_| !line.is_empty())
    }

    /// Fails if the command may still change files: it is guarded now, or a process of it runs.
    pub(crate) fn check_quiet(&self, store: &Path) -> anyhow::Result<()> {
        let session = self.view.session_id();
        let running = processes::with_variable(COMMAND_VARIABLE, &[session.to_string()]);
        let message = if let Some(process) = running.first() {
            format!(
                "the guarded command of session {} still runs and may change files: process {}, {}",
                short(session),
                process.id,
                process.name
            )
        } else if let Some(guard) = RunningGuard::of(store, session) {
            format!(
                "the command of session {} is still guarded by process {guard}, and may change files",
                short(session)
            )
        } else {
            return Ok(());
        };
        Err(busy(message))
    }

    /// Returns the error of commands that continue sessions.
    pub(crate) fn refusal(&self) -> anyhow::Error {
        let message = format!("session {} belongs to a guarded command", short(self.view.session_id()));
        let error = CommandError::new(ErrorCode::GuardedSession, message);
        match self.again() {
            Some(again) => error.with_hint(format!("`{again}` runs it again")).into(),
            None => error.into(),
        }
    }
}

/// Returns the error of a command that moves files while a program may change them.
pub(super) fn busy(message: String) -> anyhow::Error {
    let hint = "end it first; `--force` moves the files all the same, and those that others changed too";
    CommandError::new(ErrorCode::GuardBusy, message).with_hint(hint).into()
}

/// Returns a recorded command as a shell reads it.
pub(crate) fn command_line(words: &Value) -> String {
    let words = words.as_array().into_iter().flatten().filter_map(Value::as_str);
    words.map(quoted).collect::<Vec<_>>().join(" ")
}
