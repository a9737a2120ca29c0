//! What can be wrong with a definition of an agent.

use std::fmt;
use std::path::PathBuf;

use backstitch_lisp::did_you_mean;
use backstitch_providers::{Provider, ScriptError};

use super::keys::key_variables;
use crate::RuntimeError;
use crate::code::ErrorCode;

/// Where in a file something stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceLocation {
    /// The file; none for a text that came from elsewhere.
    pub file: Option<PathBuf>,
    /// The line, from 1.
    pub line: usize,
}

impl fmt::Display for SourceLocation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.file {
            Some(file) => write!(formatter, "{}:{}", file.display(), self.line),
            None => write!(formatter, "line {}", self.line),
        }
    }
}

/// What is wrong with a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The key, from the outermost on; empty for the whole.
    pub key: Vec<String>,
    /// What is wrong with it.
    pub message: String,
}

impl Problem {
    pub(super) fn new<'a>(key: impl IntoIterator<Item = &'a str>, message: impl fmt::Display) -> Self {
        Self { key: key.into_iter().map(str::to_owned).collect(), message: message.to_string() }
    }

    /// The key as people write it, such as `section[2].tools[0]`.
    fn written_key(&self) -> String {
        let mut written = String::new();
        for part in &self.key {
            match part.bytes().all(|byte| byte.is_ascii_digit()) {
                true => written.push_str(&format!("[{part}]")),
                false if written.is_empty() => written.push_str(part),
                false => written.push_str(&format!(".{part}")),
            }
        }
        written
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.key.is_empty() {
            true => formatter.write_str(&self.message),
            false => write!(formatter, "{}: {}", self.written_key(), self.message),
        }
    }
}

/// A definition of an agent cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AgentFileError {
    /// A file cannot be read.
    #[error("{} cannot be read", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What happened.
        #[source]
        source: std::io::Error,
    },
    /// Something in a file is wrong.
    #[error("{place}: {problem}")]
    InFile {
        /// Where.
        place: SourceLocation,
        /// What.
        problem: Problem,
    },
    /// Something in a definition that is no file, or not one any more, is wrong.
    #[error("{0}")]
    InDefinition(Problem),
    /// A script cannot be used.
    #[error(transparent)]
    Script(#[from] ScriptError),
    /// There is no key for an account.
    #[error("{provider} needs a key: set {}", .provider.names_of_key())]
    MissingKey {
        /// The provider.
        provider: KeyOf,
    },
    /// There is nothing to send requests with.
    #[error("requests cannot be sent: {0}")]
    Transport(String),
    /// The agent cannot be put together.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
}

impl AgentFileError {
    /// The stable code of the error.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Unreadable { .. } | Self::InFile { .. } | Self::InDefinition(_) => ErrorCode::AgentFile,
            Self::Script(_) => ErrorCode::Script,
            Self::MissingKey { .. } => ErrorCode::MissingKey,
            Self::Transport(_) => ErrorCode::Transport,
            Self::Runtime(error) => error.code(),
        }
    }
}

impl From<Problem> for AgentFileError {
    fn from(problem: Problem) -> Self {
        Self::InDefinition(problem)
    }
}

/// The provider that a key is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyOf(pub Provider);

impl KeyOf {
    fn names_of_key(self) -> String {
        key_variables(self.0).join(" or ")
    }
}

impl fmt::Display for KeyOf {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// What was probably meant by a name, as the end of a sentence; nothing when no name is near.
pub(super) fn near(name: &str, known: &[&str]) -> String {
    did_you_mean(name, known.iter().copied()).map(|hint| format!("; {hint}")).unwrap_or_default()
}
