//! Trust in the files of a project.
//!
//! A project may come from anyone, and its files could choose commands to run and addresses to send keys to.
//! Until the user trusts them, the settings of a project, agent files in it, and a store in it are not used.
//! Trust is bound to the content of these files: a changed file is asked about again. It is recorded in the state
//! directory of the user, never in the project. Files for the model to read, such as `AGENTS.md`, need no trust.
//!
//! On a terminal the user is asked. Elsewhere the command fails, unless `--trust` is given.

pub(crate) mod addresses;
mod ask;
mod command;
pub(crate) mod full;
mod ledger;
mod subject;

use std::io;
use std::path::PathBuf;

use backstitch::code::ErrorCode;
use backstitch::stores::StoresError;

pub(crate) use command::Trust;
pub(crate) use subject::{Subject, TrustState};

use crate::common::{Common, quoted};

/// Returns whether the files may be used. Asks on a terminal, and fails where nobody can be asked.
pub(crate) fn decide(common: &Common, subject: &Subject) -> Result<bool, TrustError> {
    if common.trust || subject.is_empty() {
        return Ok(true);
    }
    let standing = subject.standing()?;
    if standing == TrustState::Trusted {
        return Ok(true);
    }
    if !common.can_ask() {
        return Err(refused(subject, &standing));
    }
    let is_trusted = ask::about(subject, &standing).map_err(TrustError::NoAnswer)?;
    if is_trusted {
        subject.record()?;
    }
    Ok(is_trusted)
}

/// The error of a command that needs files which are not trusted.
pub(crate) fn refused(subject: &Subject, standing: &TrustState) -> TrustError {
    let root = subject.root.display();
    let are = |files: &[String], one, many| if files.len() == 1 { one } else { many };
    let message = match standing {
        TrustState::Changed(files) => {
            format!("{} in {root} changed since you trusted {}", files.join(", "), are(files, "it", "them"))
        }
        TrustState::New(files) => {
            format!("{} in {root} {} not trusted", files.join(", "), are(files, "is", "are"))
        }
        TrustState::Trusted => format!("{root} is not trusted"),
    };
    let path = |path: &PathBuf| quoted(&path.to_string_lossy());
    let files = subject.paths.iter().map(path).collect::<Vec<_>>();
    let (file, it) = if subject.files.len() == 1 { ("file", "it") } else { ("files", "them") };
    let hint = format!(
        "read the {file} first; then `backstitch trust {}` trusts {it}, and `--trust` does so for one command",
        files.join(" ")
    );
    TrustError::Refused { message, hint }
}

/// Trust cannot be read or recorded.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TrustError {
    #[error("{} cannot be read", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("trust cannot be recorded in {}", path.display())]
    Unwritable { path: PathBuf, source: io::Error },
    #[error("{} is damaged, so nothing is trusted: remove it", path.display())]
    Damaged { path: PathBuf, source: serde_json::Error },
    #[error("{} is not used, so nothing is trusted: {remedy}", path.display())]
    Exposed { path: PathBuf, remedy: String },
    #[error("trust cannot be recorded")]
    NoDirectory(#[source] StoresError),
    #[error("the answer cannot be read")]
    NoAnswer(#[source] io::Error),
    #[error("{message}")]
    Refused {
        message: String,
        /// What the user can do.
        hint: String,
    },
}

impl TrustError {
    pub(crate) fn code(&self) -> ErrorCode {
        match self {
            Self::Unreadable { .. } | Self::Unwritable { .. } | Self::NoAnswer(_) => ErrorCode::Io,
            Self::Damaged { .. } | Self::Exposed { .. } | Self::Refused { .. } => ErrorCode::NotTrusted,
            Self::NoDirectory(error) => error.code(),
        }
    }

    /// The commands that help.
    pub(crate) fn hint(&self) -> Option<&str> {
        match self {
            Self::Refused { hint, .. } => Some(hint),
            _ => None,
        }
    }
}
