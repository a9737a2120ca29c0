//! Wrong usage of a command: exit code 2. Nothing was started.

use std::fmt;

/// An error about the arguments of a command.
#[derive(Debug)]
pub(crate) struct Usage(pub(crate) String);

impl fmt::Display for Usage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}
