//! Errors of the command: the code of each, and how they are printed.
//!
//! Libraries return typed errors with codes, and name no commands. This module adds a hint with the commands
//! that help, and prints the code, which `backstitch explain` takes.

use std::error::Error;
use std::path::Path;
use std::process::ExitCode;

use backstitch::RuntimeError;
use backstitch::agent_file::AgentFileError;
pub(crate) use backstitch::code::ErrorCode;
use backstitch::host::{DirectoryError, FindError, NameError};
use backstitch::ports::{OpenError, PolicyError, ProcessError, SelectError, StoreError, WorkspaceError};
use backstitch::redaction::ValueRefused;
use backstitch::secrets::Secrets;
use backstitch::stores::{DIRECTORY, FILE, StoresError};
use backstitch_bridge::settings::SettingsError;
use rustyline::error::ReadlineError;
use serde_json::json;

use crate::common::Common;
use crate::config::ConfigError;
use crate::terminal::{self, Role, Text};
use crate::trust::TrustError;
use crate::usage::Usage;

/// An error of the command itself, with a code and a hint.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct CommandError {
    code: ErrorCode,
    message: String,
    hint: Option<String>,
}

impl CommandError {
    pub(crate) fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), hint: None }
    }

    /// Adds the commands that help.
    pub(crate) fn with_hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }
}

/// An error that the last event of a run has reported already.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct ReportedError(pub(crate) anyhow::Error);

/// Returns the code of the outermost error in the chain that has one.
pub(crate) fn code_of(error: &anyhow::Error) -> ErrorCode {
    error.chain().find_map(known_code).unwrap_or(ErrorCode::Internal)
}

fn known_code(error: &(dyn Error + 'static)) -> Option<ErrorCode> {
    fn of<E: Error + 'static>(error: &(dyn Error + 'static), code: fn(&E) -> ErrorCode) -> Option<ErrorCode> {
        error.downcast_ref::<E>().map(code)
    }
    of(error, |error: &CommandError| error.code)
        .or_else(|| of(error, |_: &Usage| ErrorCode::Usage))
        .or_else(|| of(error, |_: &ConfigError| ErrorCode::ConfigFile))
        .or_else(|| of(error, TrustError::code))
        .or_else(|| of(error, SettingsError::code))
        .or_else(|| of(error, FindError::code))
        .or_else(|| of(error, NameError::code))
        .or_else(|| of(error, RuntimeError::code))
        .or_else(|| of(error, AgentFileError::code))
        .or_else(|| of(error, |error: &ValueRefused| error.code()))
        .or_else(|| of(error, StoreError::code))
        .or_else(|| of(error, OpenError::code))
        .or_else(|| of(error, SelectError::code))
        .or_else(|| of(error, StoresError::code))
        .or_else(|| of(error, WorkspaceError::code))
        .or_else(|| of(error, PolicyError::code))
        .or_else(|| of(error, ProcessError::code))
        .or_else(|| of(error, |_: &std::io::Error| ErrorCode::Io))
        .or_else(|| of(error, |_: &ReadlineError| ErrorCode::Io))
}

/// Formats an error with its causes. Errors of libraries often repeat the text of their cause; it is printed once.
pub(crate) fn message_of(error: &anyhow::Error) -> String {
    // A server may repeat keys, and each layer removes only those that it knows.
    let secrets = Secrets::new(crate::keys::all());
    let mut message = String::new();
    for cause in error.chain().map(ToString::to_string) {
        let cause = secrets.redact(&cause);
        let is_known = |part: &str| !part.is_empty() && message.contains(part);
        let mut rest = &*cause;
        while let Some((_, after)) = rest.split_once(": ").filter(|(first, _)| is_known(first)) {
            rest = after;
        }
        let last = rest.rsplit_once(": ").map_or(rest, |(_, last)| last);
        if is_known(last) {
            continue;
        }
        if !message.is_empty() {
            message.push_str(": ");
        }
        message.push_str(rest);
    }
    message
}

/// Whether the input of the command is wrong: its arguments, its files, or the keys in its environment.
fn is_usage(error: &anyhow::Error) -> bool {
    error.chain().any(|error| {
        fn is<E: Error + 'static>(error: &(dyn Error + 'static), about: fn(&E) -> bool) -> bool {
            error.downcast_ref::<E>().is_some_and(about)
        }
        let about_file = |error: &AgentFileError| {
            !matches!(error, AgentFileError::Runtime(_) | AgentFileError::Transport(_))
        };
        let about_sql =
            |error: &SelectError| matches!(error, SelectError::Refused { .. } | SelectError::Invalid { .. });
        let about_call = |error: &RuntimeError| {
            use RuntimeError::{InvalidSchedule, InvalidSignal, NoFiles};
            matches!(error.cause(), NoFiles { .. } | InvalidSchedule { .. } | InvalidSignal { .. })
        };
        is(error, about_file)
            || is(error, about_sql)
            || is(error, |error: &CommandError| error.code == ErrorCode::NoModel)
            || is(error, about_call)
            || is(error, |error: &FindError| matches!(error, FindError::NotAnId { .. }))
            || error.is::<Usage>()
            || error.is::<ConfigError>()
            || error.is::<TrustError>()
            || error.is::<ValueRefused>()
    })
}

/// Prints the error that ended a command, and returns the exit code. With `events`, it is printed as a JSON
/// event too, unless the last event of a run has reported it.
pub(crate) fn report(common: &Common, error: anyhow::Error, events: bool) -> ExitCode {
    let (error, is_reported) = match error.downcast::<ReportedError>() {
        Ok(ReportedError(error)) => (error, true),
        Err(error) => (error, false),
    };
    let (code, message) = (code_of(&error), message_of(&error));
    if events && !is_reported {
        print_event(code, &message);
    }
    print("error:", Role::Failure, &message);
    if let Some(hint) = advice_of(common, &error) {
        print("hint:", Role::Accent, &hint);
    }
    print_code(code);
    if is_usage(&error) { ExitCode::from(2) } else { ExitCode::FAILURE }
}

/// Returns what to do about an error.
pub(crate) fn advice_of(common: &Common, error: &anyhow::Error) -> Option<String> {
    error.chain().find_map(known_hint).or_else(|| hint(common, code_of(error)))
}

/// Prints an error as an event.
pub(crate) fn print_event(code: ErrorCode, message: &str) {
    println!("{}", json!({"v": 1, "event": "error", "code": code.as_str(), "message": message}));
}

/// Prints the lines of a message, the first of them after a word.
fn print(word: &str, role: Role, message: &str) {
    let mut lines = message.split('\n');
    let first = lines.next().unwrap_or_default();
    terminal::error_line(&Text::new().add(role, word).plain(" ").plain(first));
    lines.for_each(|line| terminal::error_line(&line.into()));
}

/// Prints the line that names the code of an error.
pub(crate) fn print_code(code: ErrorCode) {
    terminal::error_line(&Text::new().add(Role::Dim, explain_hint(code)));
}

/// Formats the line that names the code of an error.
pub(crate) fn explain_hint(code: ErrorCode) -> String {
    format!("code: {code}; `backstitch explain {code}` says more")
}

/// Returns a hint for an error about the directory of a session.
fn directory_hint(error: &(dyn Error + 'static)) -> Option<String> {
    let RuntimeError::OpenDirectory(error) = error.downcast_ref::<RuntimeError>()?.cause() else {
        return None;
    };
    match error {
        DirectoryError::Gone { directory, session } => {
            let around = directory.parent().and_then(Path::file_name).map(|name| name.to_string_lossy());
            Some(match around.is_some_and(|name| name.starts_with(&format!("{session}."))) {
                true => format!(
                    "it was the checkout of a worker: `backstitch enqueue --session {session}` lets one continue it"
                ),
                false => "if it was moved, `--workspace DIR` names its new path".to_owned(),
            })
        }
        DirectoryError::Replaced { .. } => {
            Some("if the files were moved, `--workspace DIR` names their new path".to_owned())
        }
        DirectoryError::InStore { store } => {
            let own = store.parent().and_then(|own| own.canonicalize().ok())?;
            let elsewhere = own.join(DIRECTORY).join(FILE);
            Some(format!("`--store {}` keeps it in one", elsewhere.display()))
        }
        DirectoryError::OfParent { own, .. } => {
            Some(format!("`--workspace {}` names the directory of the fork", own.display()))
        }
        DirectoryError::OtherFiles { .. } => Some("`--workspace DIR` names an empty directory".to_owned()),
        DirectoryError::Overlaps { .. } | DirectoryError::NoRoom { .. } => {
            Some("use `--workspace DIR`".to_owned())
        }
        DirectoryError::Copy { .. } => {
            Some("without `--isolated`, the session works in the directory itself".to_owned())
        }
        DirectoryError::Setup { is_confined, .. } => {
            let mut hint = "correct `setup` in the `[workspace]` of the agent file".to_owned();
            if *is_confined {
                hint.push_str(
                    "; it runs in the sandbox of the agent, whose `write` and `network` allow more",
                );
            }
            Some(hint)
        }
        _ => None,
    }
}

/// Returns the hint that an error has itself.
fn known_hint(error: &(dyn Error + 'static)) -> Option<String> {
    let is_empty = matches!(error.downcast_ref::<FindError>(), Some(FindError::Empty));
    let of_command = error.downcast_ref::<CommandError>().and_then(|error| error.hint.as_deref());
    let hint = of_command
        .or_else(|| error.downcast_ref::<TrustError>()?.hint())
        .or_else(|| is_empty.then_some("`backstitch run` starts one"))
        .or_else(|| error.downcast_ref::<StoreError>()?.hint())
        .or_else(|| error.downcast_ref::<RuntimeError>()?.hint())
        .or_else(|| error.downcast_ref::<OpenError>()?.hint())
        .or_else(|| error.downcast_ref::<SelectError>()?.hint());
    hint.map(str::to_owned).or_else(|| directory_hint(error))
}

/// Returns a hint for an error of a library.
fn hint(common: &Common, code: ErrorCode) -> Option<String> {
    match code {
        ErrorCode::SessionNotFound => Some(format!("`{}` lists the sessions", common.hint("ls"))),
        ErrorCode::StoreDamaged | ErrorCode::JournalInvalid | ErrorCode::ObjectMissing => Some(format!(
            "`{}` reports the extent, `{}` copies the intact part to a new store",
            common.hint("verify"),
            common.hint("salvage NEW_STORE")
        )),
        ErrorCode::SettingsInvalid => Some(
            "remove comments and marks that JSON does not have, or repair the file, and try again".to_owned(),
        ),
        ErrorCode::GuardBusy => Some("wait until it has ended, and try again".to_owned()),
        ErrorCode::SessionShared => Some("`--with-forks` deletes them too".to_owned()),
        ErrorCode::StoreFull => Some(format!("`{}` deletes unreferenced data", common.hint("gc"))),
        ErrorCode::HistoryLost => Some(format!(
            "find out what its last calls did outside, then `{}` continues from what is left",
            common.hint("resume SESSION")
        )),
        ErrorCode::StoreOlder => Some(format!("`{}` migrates the store", common.hint("gc"))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use anyhow::Context as _;

    use super::*;

    #[test]
    fn no_part_of_a_message_is_printed_twice() {
        let of = |causes: &[&str]| {
            let (first, others) = causes.split_last().unwrap();
            let error = others
                .iter()
                .rev()
                .fold(anyhow::anyhow!("{first}"), |error, cause| error.context((*cause).to_owned()));
            message_of(&error)
        };
        assert_eq!(of(&["cannot read x", "no such file"]), "cannot read x: no such file");
        assert_eq!(of(&["x: is a directory", "is a directory"]), "x: is a directory");
        assert_eq!(
            of(&["the store /x cannot be opened", "/x: is a directory", "is a directory"]),
            "the store /x cannot be opened: is a directory"
        );
        assert_eq!(
            of(&["agent did not answer (network): refused", "openai did not answer (network): refused"]),
            "agent did not answer (network): refused"
        );
        assert_eq!(
            of(&["damaged", "disk image is malformed", "Error code 11: disk image is malformed"]),
            "damaged: disk image is malformed"
        );
    }

    #[test]
    fn the_outermost_known_error_gives_the_code() {
        let full = StoreError::Full { reason: "no room".to_owned(), source: None };
        let stopped = anyhow::Error::from(RuntimeError::Store(full)).context("session 1 stopped");
        assert_eq!(code_of(&stopped), ErrorCode::StoreFull);
        let missing = Err::<(), _>(std::io::Error::other("gone")).context("cannot read x").unwrap_err();
        assert_eq!(code_of(&missing), ErrorCode::Io);
        let own: anyhow::Error = CommandError::new(ErrorCode::SessionHeld, "it is held").into();
        assert_eq!(code_of(&own.context("more")), ErrorCode::SessionHeld);
        assert_eq!(code_of(&Usage("no".to_owned()).into()), ErrorCode::Usage);
        assert_eq!(code_of(&anyhow::anyhow!("odd")), ErrorCode::Internal);
    }
}
