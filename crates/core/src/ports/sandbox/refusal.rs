//! What a sandbox refused, for people and for the model.

use std::fmt;
use std::path::{Path, PathBuf};

/// Something that a sandbox refused to a process, as far as the output of the process shows it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum SandboxRefusal {
    /// A write of this path.
    Write(PathBuf),
    /// A write of this path, which `write` allows and which did not exist when the session started.
    Missing(PathBuf),
    /// The network.
    Network,
    /// A socket of another program on this machine.
    Sockets,
    /// A terminal.
    Terminals,
    /// The output reports a refusal, and names no path that the sandbox protects.
    Unnamed,
}

impl SandboxRefusal {
    /// Returns the path.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Write(path) | Self::Missing(path) => Some(path),
            Self::Network | Self::Sockets | Self::Terminals | Self::Unnamed => None,
        }
    }
}

impl fmt::Display for SandboxRefusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Write(path) => write!(
                formatter,
                "the sandbox refused to write {}; a person can allow it with `write` in `[sandbox]`",
                path.display()
            ),
            Self::Missing(path) => write!(
                formatter,
                "the sandbox refused to write {}: `write` in `[sandbox]` allows it, but it did not exist when \
                 the session started; a person has to create it and start another session",
                path.display()
            ),
            Self::Network => formatter.write_str(
                "the sandbox refuses the network; a person can allow it with `network = true` in `[sandbox]`",
            ),
            Self::Sockets => formatter.write_str(
                "the sandbox refuses sockets of other programs, such as a display, a daemon of containers or an ssh \
                 agent; a person can allow them with `sockets = \"on\"` in `[sandbox]`",
            ),
            Self::Terminals => formatter.write_str(
                "the sandbox refuses terminals; a person can allow them with `terminals = true` in `[sandbox]`",
            ),
            Self::Unnamed => formatter.write_str(
                "something was refused, and the output does not name it; it may be the sandbox, which allows \
                 writes only in the workspace, in $TMPDIR and in the paths of `write` in `[sandbox]`",
            ),
        }
    }
}
