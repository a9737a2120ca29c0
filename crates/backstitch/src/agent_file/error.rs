//! Errors of definitions of agents.

use std::fmt;
use std::path::PathBuf;

use backstitch_lisp::did_you_mean;
use backstitch_providers::ScriptError;

use crate::RuntimeError;
use crate::code::ErrorCode;

/// A line of an agent file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceLocation {
    /// The file; `None` for a text that is not in a file.
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

/// An error about a key of a definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Path of the key, outermost part first; empty for the whole definition.
    pub key: Vec<String>,
    /// What is wrong with the key or its value.
    pub message: String,
}

impl Problem {
    /// Describes what is wrong with a key.
    pub fn new<'a>(key: impl IntoIterator<Item = &'a str>, message: impl fmt::Display) -> Self {
        Self { key: key.into_iter().map(str::to_owned).collect(), message: message.to_string() }
    }

    /// Fails with the first key of a table that is wrong: its name, whether it is wrong, and what is wrong with it.
    pub(super) fn check<const COUNT: usize>(table: [(&str, bool, &str); COUNT]) -> Result<(), Self> {
        let first = table.into_iter().find(|(_, is_wrong, _)| *is_wrong);
        first.map_or(Ok(()), |(key, _, message)| Err(Self::new([key], message)))
    }

    /// Places the key below another one.
    #[must_use]
    pub(super) fn below(self, key: &[String]) -> Self {
        Self { key: [key, self.key.as_slice()].concat(), ..self }
    }

    /// Formats the path of the key, such as `section[2].tools[0]`.
    fn written_key(&self) -> String {
        let is_index = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        let written = |part: &String| if is_index(part) { format!("[{part}]") } else { format!(".{part}") };
        let key: String = self.key.iter().map(written).collect();
        key.strip_prefix('.').unwrap_or(&key).to_owned()
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.key.is_empty() {
            formatter.write_str(&self.message)
        } else {
            write!(formatter, "{}: {}", self.written_key(), self.message)
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
        /// The error of the system.
        #[source]
        source: std::io::Error,
    },
    /// A key of a file is wrong.
    #[error("{place}: {problem}")]
    InFile {
        /// The line of the key.
        place: SourceLocation,
        /// The key and what is wrong with it.
        problem: Problem,
    },
    /// A key of a definition that was not read from a file is wrong.
    #[error("{0}")]
    InDefinition(Problem),
    /// A script cannot be used.
    #[error(transparent)]
    Script(#[from] ScriptError),
    /// The API key of a provider is missing.
    #[error("{provider} needs a key: set {}", .variables.join(" or "))]
    MissingKey {
        /// The name of the provider.
        provider: String,
        /// The environment variables that may hold the key.
        variables: Vec<String>,
    },
    /// There is no transport for requests.
    #[error("requests cannot be sent: {0}")]
    Transport(String),
    /// The agent cannot be built.
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

/// Formats a suggestion for an unknown name as the end of a sentence; empty if no known name is similar.
pub(super) fn near(name: &str, known: &[&str]) -> String {
    did_you_mean(name, known.iter().copied()).map(|hint| format!("; {hint}")).unwrap_or_default()
}
