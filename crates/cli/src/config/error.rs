//! Errors of configuration files and of variables.

use std::path::PathBuf;

use backstitch::agent_file::{AgentFileError, Problem, SourceLocation};

/// A setting cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigError {
    #[error("{} cannot be read", path.display())]
    Unreadable { path: PathBuf, source: std::io::Error },
    #[error("{} cannot be written", path.display())]
    Unwritable { path: PathBuf, source: std::io::Error },
    #[error("{place}: {problem}")]
    InFile { place: SourceLocation, problem: Problem },
    #[error("{variable}: {message}")]
    InVariable { variable: &'static str, message: String },
    #[error("there is no configuration directory, because neither XDG_CONFIG_HOME nor HOME is set")]
    NoDirectory,
    #[error("{key}: {message}")]
    InKey { key: String, message: String },
}

impl ConfigError {
    /// Converts an error of the parser of agent files, which reads the same kind of text.
    pub(super) fn of_source(error: AgentFileError) -> Self {
        match error {
            AgentFileError::InFile { place, problem } => Self::InFile { place, problem },
            AgentFileError::Unreadable { path, source } => Self::Unreadable { path, source },
            other => {
                let place = SourceLocation { file: None, line: 1 };
                Self::InFile { place, problem: Problem::new([], other) }
            }
        }
    }
}
