//! What a sandbox refused, for people and for the model.

use std::path::{Path, PathBuf};

/// Something that a sandbox refused to a process, as far as the output of the process shows it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
pub enum SandboxRefusal {
    /// A write of this path.
    #[error("the sandbox refused to write {}; a person can allow it with `write` in `[sandbox]`", .0.display())]
    Write(PathBuf),
    /// A write of this path, which `write` allows and which did not exist when the session started.
    #[error(
        "the sandbox refused to write {}: `write` in `[sandbox]` allows it, but it did not exist when the session started; a person has to create it and start another session",
        .0.display()
    )]
    Missing(PathBuf),
    /// Reading of this path, which is hidden.
    #[error(
        "the sandbox refused to read {}, which holds secrets or was hidden; a person can allow it with `read` in `[sandbox]`, or for one command of the shell that asks for it in `needs`",
        .0.display()
    )]
    Read(PathBuf),
    /// The network.
    #[error("the sandbox refuses the network; a person can allow it with `network = true` in `[sandbox]`")]
    Network,
    /// A socket of another program on this machine.
    #[error(
        "the sandbox refuses sockets of other programs, such as a display, a daemon of containers or an ssh agent; a person can allow them with `sockets = \"on\"` in `[sandbox]`"
    )]
    Sockets,
    /// A terminal.
    #[error("the sandbox refuses terminals; a person can allow them with `terminals = true` in `[sandbox]`")]
    Terminals,
    /// The output reports a refusal, and names no path that the sandbox protects.
    #[error(
        "something was refused, and the output does not name it; it may be the sandbox, which allows writes only in the workspace, in $TMPDIR and in the paths of `write` in `[sandbox]`"
    )]
    Unnamed,
}

impl SandboxRefusal {
    /// Returns the path.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Write(path) | Self::Missing(path) | Self::Read(path) => Some(path),
            Self::Network | Self::Sockets | Self::Terminals | Self::Unnamed => None,
        }
    }
}
