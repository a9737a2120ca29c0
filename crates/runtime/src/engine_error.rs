//! Why an engine cannot do its work.

use backstitch_core::code::ErrorCode;

/// Why an engine cannot do its work.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// The runtime has no engines.
    #[error("the agent {agent} names the engine {engine}, and this runtime has none: pass the engines to it")]
    Unavailable {
        /// The agent.
        agent: String,
        /// The engine.
        engine: String,
    },
    /// No engine has this name.
    #[error("there is no engine {name:?}; known: {known}")]
    Unknown {
        /// The name.
        name: String,
        /// The known names.
        known: String,
    },
    /// The program is not installed.
    #[error("{title} is not installed: there is no program `{program}`. {install}")]
    Missing {
        /// The name of the engine, for people.
        title: String,
        /// The program that was looked for.
        program: String,
        /// What to install.
        install: String,
    },
    /// The version of the program does not do what is needed.
    #[error("{title} {found} is too old: {needed} or newer is needed")]
    Version {
        /// The name of the engine, for people.
        title: String,
        /// The version that was found.
        found: String,
        /// The oldest version that can be used.
        needed: String,
    },
    /// The session has no directory.
    #[error("{title} works on files of the disk, and the session has no directory")]
    NoDirectory {
        /// The name of the engine, for people.
        title: String,
    },
    /// The program cannot be started.
    #[error("{title} cannot be started: {reason}")]
    Start {
        /// The name of the engine, for people.
        title: String,
        /// The reason.
        reason: String,
    },
    /// The conversation that was to be continued does not exist any more.
    #[error("{title} does not know the conversation {session} any more")]
    SessionGone {
        /// The name of the engine, for people.
        title: String,
        /// The program's own id of the conversation.
        session: String,
    },
    /// The program said something that cannot be understood.
    #[error("{title} does not speak the expected protocol: {reason}")]
    Protocol {
        /// The name of the engine, for people.
        title: String,
        /// The reason.
        reason: String,
    },
    /// The program ended before it answered.
    #[error("{title} ended before it answered{}", stderr_suffix(.stderr))]
    Ended {
        /// The name of the engine, for people.
        title: String,
        /// The end of what it wrote to its standard error.
        stderr: String,
    },
    /// The program reports a failure.
    #[error("{title} failed: {message}")]
    Failed {
        /// The name of the engine, for people.
        title: String,
        /// Its message.
        message: String,
    },
}

fn stderr_suffix(stderr: &str) -> String {
    if stderr.trim().is_empty() { String::new() } else { format!(": {}", stderr.trim()) }
}

impl EngineError {
    /// The stable code of the error.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Unavailable { .. } | Self::Unknown { .. } | Self::Missing { .. } | Self::Version { .. } => {
                ErrorCode::EngineMissing
            }
            Self::NoDirectory { .. } => ErrorCode::Workspace,
            Self::Start { .. }
            | Self::SessionGone { .. }
            | Self::Protocol { .. }
            | Self::Ended { .. }
            | Self::Failed { .. } => ErrorCode::EngineFailed,
        }
    }
}
