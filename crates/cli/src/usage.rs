//! Wrong usage of a command: exit code 2. Nothing was started.

/// An error about the arguments of a command.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Usage(pub(crate) String);

/// Fails with an error about the arguments.
pub(crate) fn refuse<T>(message: impl Into<String>) -> anyhow::Result<T> {
    Err(Usage(message.into()).into())
}
