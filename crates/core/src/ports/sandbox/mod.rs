//! What the processes of a tool may change outside of the workspace.
//!
//! A [`Sandbox`] is plain data. The executor of processes enforces it with the means of the system, and
//! reports what it cannot enforce.

mod form;
mod needs;
mod places;
mod refusal;

use std::path::PathBuf;

pub use needs::CommandNeeds;
pub use places::{SECRET_PLACES, is_place};
pub use refusal::SandboxRefusal;

use crate::text_form::words;

words! {
    /// Files that processes may write, the strictest mode last.
    #[derive(Default)]
    SandboxMode = "sandbox" {
        /// Everything that the user may write.
        #[default]
        Off = "off",
        /// The workspace, and a temporary directory that is removed after the call.
        Workspace = "workspace",
        /// Only a temporary directory that is removed after the call.
        ReadOnly = "read-only",
    }
}

/// An error for a text that names no mode.
#[derive(Debug, thiserror::Error)]
#[error("there is no sandbox {name:?}; there are workspace, read-only and off")]
pub struct UnknownSandbox {
    /// The text.
    pub name: String,
}

impl std::str::FromStr for SandboxMode {
    type Err = UnknownSandbox;

    fn from_str(text: &str) -> Result<Self, UnknownSandbox> {
        Self::of_word(text).ok_or_else(|| UnknownSandbox { name: text.to_owned() })
    }
}

words! {
    /// Sockets of this machine (`AF_UNIX`) that processes may reach: through them a process can ask other programs of
    /// the user to act for it, such as a terminal multiplexer, a message bus or the daemon of containers. The strictest
    /// choice is first.
    SandboxSockets = "setting of sockets" {
        /// None, except connected pairs (`socketpair`).
        Off = "off",
        /// Those in directories that the processes may write, and those that they opened themselves. A system that
        /// cannot tell them apart refuses all, as [`Off`](Self::Off) does.
        Inside = "inside",
        /// All.
        On = "on",
    }
}

/// The limits of a tool's processes. By default there are none.
///
/// The text form is the name of a mode, or a table with `mode` (default `workspace`), `write`, `hide`, `read`,
/// `network`, `sockets` and `terminals`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sandbox {
    /// Files that processes may write.
    pub mode: SandboxMode,
    /// Further files and directories that they may write, such as the cache of a package manager.
    pub write: Vec<PathBuf>,
    /// Paths of `write` that did not exist when the session started, so that its processes cannot write them. `None`
    /// until a session has resolved the paths. Afterwards `write` holds paths without links.
    pub missing: Option<Vec<PathBuf>>,
    /// Files and directories outside of the workspace whose content they cannot read, such as those with keys. When a
    /// session starts, they are resolved, and the [places of secrets](SECRET_PLACES) are added.
    pub hide: Vec<PathBuf>,
    /// Paths that they may read although they are hidden.
    pub read: Vec<PathBuf>,
    /// Whether they may use the network.
    pub network: bool,
    /// Sockets of this machine that they may reach. `None` is the meaning of sessions that were recorded before there
    /// was this choice: the sockets follow the network. See [`allowed_sockets`](Self::allowed_sockets).
    pub sockets: Option<SandboxSockets>,
    /// Whether they may create terminals, and with that write to the other terminals of the user.
    pub terminals: bool,
}

impl Default for Sandbox {
    fn default() -> Self {
        Self::off()
    }
}

impl Sandbox {
    /// Processes write only in the workspace. They may use the network, and no sockets outside of the workspace.
    pub fn workspace() -> Self {
        Self {
            mode: SandboxMode::Workspace,
            write: Vec::new(),
            missing: None,
            hide: Vec::new(),
            read: Vec::new(),
            network: true,
            sockets: Some(SandboxSockets::Inside),
            terminals: false,
        }
    }

    /// Processes write only in a temporary directory. They may use the network.
    pub fn read_only() -> Self {
        Self { mode: SandboxMode::ReadOnly, ..Self::workspace() }
    }

    /// The meaning of a table without fields.
    fn of_table() -> Self {
        Self { sockets: None, ..Self::workspace() }
    }

    /// Processes are not confined.
    pub fn off() -> Self {
        Self { mode: SandboxMode::Off, sockets: None, ..Self::workspace() }
    }

    /// Allows processes to write a file or a directory outside of the workspace. No part of the path may be a link.
    #[must_use]
    pub fn write(mut self, path: impl Into<PathBuf>) -> Self {
        self.write.push(path.into());
        self
    }

    /// Keeps processes from reading a file or a directory outside of the workspace.
    #[must_use]
    pub fn hide(mut self, path: impl Into<PathBuf>) -> Self {
        self.hide.push(path.into());
        self
    }

    /// Refuses the network.
    #[must_use]
    pub fn without_network(mut self) -> Self {
        self.network = false;
        self
    }

    /// Sets which sockets of this machine processes may reach.
    #[must_use]
    pub fn sockets(mut self, sockets: SandboxSockets) -> Self {
        self.sockets = Some(sockets);
        self
    }

    /// Allows processes to create terminals.
    #[must_use]
    pub fn with_terminals(mut self) -> Self {
        self.terminals = true;
        self
    }

    /// Sets what a new session leaves open to its default: sockets only inside.
    pub fn complete(&mut self) {
        if !self.is_off() {
            self.sockets.get_or_insert(SandboxSockets::Inside);
        }
    }

    /// Returns whether processes are not confined.
    pub fn is_off(&self) -> bool {
        self.mode == SandboxMode::Off
    }

    /// Returns the sockets of this machine that processes may reach.
    pub fn allowed_sockets(&self) -> SandboxSockets {
        match self.sockets {
            _ if self.is_off() => SandboxSockets::On,
            Some(sockets) => sockets,
            None if self.network => SandboxSockets::On,
            None => SandboxSockets::Inside,
        }
    }

    /// Returns whether a process can change the content of no file outside of the workspace, and reach nothing
    /// over the network, by a socket or on a terminal. Then its call can be rolled back and run again after a crash.
    pub fn keeps_effects_inside(&self) -> bool {
        !self.is_off()
            && !self.network
            && self.allowed_sockets() != SandboxSockets::On
            && !self.terminals
            && self.write.is_empty()
    }

    /// Fails if there are limits without a mode that enforces them.
    pub fn check(&self) -> Result<(), InvalidSandbox> {
        let setting = match self {
            _ if !self.is_off() => return Ok(()),
            Self { network: false, .. } => "network",
            Self { sockets: Some(SandboxSockets::Off | SandboxSockets::Inside), .. } => "sockets",
            Self { terminals: true, .. } => "terminals",
            Self { write, .. } if !write.is_empty() => "write",
            Self { hide, .. } if !hide.is_empty() => "hide",
            Self { read, .. } if !read.is_empty() => "read",
            _ => return Ok(()),
        };
        Err(InvalidSandbox { setting })
    }
}

/// An error for limits that nothing enforces.
#[derive(Debug, thiserror::Error)]
#[error(
    "the sandbox is off, so `{setting}` has no effect: remove it, or set the mode to workspace or read-only"
)]
pub struct InvalidSandbox {
    /// The setting.
    pub setting: &'static str,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_process_that_reaches_nothing_outside_can_be_repeated() {
        let quiet = Sandbox::workspace().without_network();
        for repeatable in [
            quiet.clone(),
            Sandbox::read_only().without_network(),
            quiet.clone().sockets(SandboxSockets::Off),
            Sandbox { sockets: None, ..quiet.clone() },
        ] {
            assert!(repeatable.keeps_effects_inside(), "{repeatable:?}");
        }
        for open in [
            Sandbox::workspace(),
            quiet.clone().write("/a"),
            quiet.clone().sockets(SandboxSockets::On),
            quiet.clone().with_terminals(),
            Sandbox { mode: SandboxMode::Off, ..quiet },
        ] {
            assert!(!open.keeps_effects_inside(), "{open:?}");
        }
    }

    #[test]
    fn sockets_of_old_sessions_follow_the_network() {
        let old = Sandbox { sockets: None, ..Sandbox::workspace() };
        assert_eq!(old.allowed_sockets(), SandboxSockets::On);
        assert_eq!(old.clone().without_network().allowed_sockets(), SandboxSockets::Inside);
        let mut new = old;
        new.complete();
        assert_eq!(new, Sandbox::workspace());
        let mut off = Sandbox::off();
        off.complete();
        assert_eq!(off, Sandbox::off());
    }
}
