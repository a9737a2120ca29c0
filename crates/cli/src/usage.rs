//! What a command was given is wrong, and nothing was started: exit code 2.

use std::fmt;

use backstitch::agent_file::AgentFileError;
use backstitch::code::ErrorCode;

use crate::error::CommandError;

/// The command was called wrongly.
#[derive(Debug)]
pub(crate) struct Usage(pub(crate) String);

impl fmt::Display for Usage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

/// Whether an error is about what the command was given: its arguments, its files, the keys in its environment.
pub(crate) fn is_usage(error: &anyhow::Error) -> bool {
    error.chain().any(|error| {
        let about_file = error
            .downcast_ref::<AgentFileError>()
            .is_some_and(|error| !matches!(error, AgentFileError::Runtime(_) | AgentFileError::Transport(_)));
        let is_unnamed =
            error.downcast_ref::<CommandError>().is_some_and(|error| error.code() == ErrorCode::NoModel);
        about_file || is_unnamed || error.is::<Usage>()
    })
}
