//! What the system can enforce.

use std::fmt;
use std::path::Path;
use std::sync::OnceLock;

use backstitch_core::ports::{Sandbox, SandboxMode, SandboxSockets};

/// The first version of Landlock under which programs can rename files from one directory to another.
const USABLE: u32 = 2;

/// The first version of Landlock that protects the content of files completely: before it, a file could be
/// truncated.
const COMPLETE: u32 = 3;

/// The first version of Landlock that tells sockets inside of the workspace from others.
const DISTINGUISHES_SOCKETS: u32 = 9;

/// The means of the running system to confine processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct SandboxSupport {
    /// Version of Landlock, which limits the files; 0 without it.
    pub landlock: u32,
    /// Whether there is seccomp, which refuses the network, sockets and terminals.
    pub seccomp: bool,
}

impl SandboxSupport {
    /// Returns whether writes of files can be limited.
    pub fn limits_files(self) -> bool {
        self.landlock >= USABLE
    }

    /// Returns whether commands can be confined: their files, their network and their sockets. Where they cannot, the
    /// default is to ask about each of them.
    pub fn confines(self) -> bool {
        self.limits_files() && self.seccomp
    }

    /// Returns whether sockets inside of the workspace can be told from others.
    pub fn distinguishes_sockets(self) -> bool {
        self.landlock >= DISTINGUISHES_SOCKETS
    }

    /// Returns the sockets that processes in a sandbox can reach: `inside` is `off` where the system cannot tell
    /// sockets apart.
    pub fn sockets(self, sandbox: &Sandbox) -> SandboxSockets {
        match sandbox.allowed_sockets() {
            SandboxSockets::Inside if !self.distinguishes_sockets() => SandboxSockets::Off,
            sockets => sockets,
        }
    }

    /// Returns whether the limits of a sandbox are enforced completely.
    pub fn enforces(self, sandbox: &Sandbox) -> bool {
        self.missing(sandbox).is_none()
    }

    /// Returns what is not enforced of a sandbox, for people; `None` if all of it is.
    pub fn missing(self, sandbox: &Sandbox) -> Option<String> {
        if sandbox.is_off() {
            return None;
        }
        let mut missing = Vec::new();
        let access = if sandbox.hide.is_empty() { "write" } else { "read and write" };
        match self.landlock {
            0 => missing.push(format!(
                "commands can {access} every file of this user, because the system has no Landlock"
            )),
            old if old < USABLE => missing.push(format!(
                "commands can {access} every file of this user, because version {old} of Landlock is too old"
            )),
            old if old < COMPLETE => missing.push(format!(
                "commands can truncate files outside of the workspace, because version {old} of Landlock \
                 does not refuse that"
            )),
            _ => {}
        }
        if !self.seccomp {
            let what = match (sandbox.network, sandbox.allowed_sockets()) {
                (false, _) => "use the network, and reach other programs",
                (true, SandboxSockets::On) => "type into terminals, and limit other processes",
                (true, _) => "reach other programs by sockets and terminals",
            };
            missing.push(format!("commands can {what}, because the system has no seccomp"));
        }
        (!missing.is_empty()).then(|| missing.join("; "))
    }
}

impl fmt::Display for SandboxSupport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.landlock {
            0 => formatter.write_str("no Landlock")?,
            version if version < USABLE => write!(formatter, "Landlock version {version}, too old")?,
            version => write!(formatter, "Landlock version {version}")?,
        }
        formatter.write_str(if self.seccomp { ", seccomp" } else { ", no seccomp" })
    }
}

/// Finds out what the system can enforce. The first call tries it on a thread that then ends.
pub fn probe() -> SandboxSupport {
    static FOUND: OnceLock<SandboxSupport> = OnceLock::new();
    *FOUND.get_or_init(find)
}

#[cfg(target_os = "linux")]
fn find() -> SandboxSupport {
    // A thread of its own, because it is confined from then on.
    let landlock = std::thread::spawn(super::system::landlock_version);
    let seccomp = std::thread::spawn(|| super::calls::refuse(false, SandboxSockets::Off).is_ok());
    SandboxSupport {
        landlock: landlock.join().unwrap_or_default(),
        seccomp: seccomp.join().unwrap_or_default(),
    }
}

#[cfg(not(target_os = "linux"))]
fn find() -> SandboxSupport {
    SandboxSupport { landlock: 0, seccomp: false }
}

/// Returns what is not protected from a process although its sandbox asks for it, for people. `None` if there
/// is no such gap.
pub(crate) fn unprotected(sandbox: &Sandbox, root: Option<&Path>, own: Option<&Path>) -> Option<String> {
    if sandbox.is_off() {
        return None;
    }
    let holds_store = sandbox.mode == SandboxMode::Workspace
        && root
            .zip(own)
            .is_some_and(|(root, own)| root.canonicalize().is_ok_and(|root| own.starts_with(root)));
    let store = holds_store.then(|| {
        let own = own.map(Path::display).map(|own| own.to_string()).unwrap_or_default();
        format!("commands can write the store {own}, because it lies in the workspace")
    });
    let all: Vec<_> = probe().missing(sandbox).into_iter().chain(store).collect();
    (!all.is_empty()).then(|| all.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_depends_on_the_sandbox() {
        let with = |landlock, seccomp| SandboxSupport { landlock, seccomp };
        let (on, quiet) = (Sandbox::workspace(), Sandbox::workspace().without_network());
        for support in [with(3, true), with(9, true)] {
            assert!(support.enforces(&on) && support.enforces(&quiet));
        }
        assert!(with(3, false).missing(&on).unwrap().contains("sockets and terminals"));
        assert!(with(3, false).missing(&quiet).unwrap().contains("no seccomp"));
        assert!(with(2, true).missing(&on).unwrap().contains("truncate"));
        assert!(with(1, true).missing(&on).unwrap().contains("too old"));
        let nothing = with(0, false).missing(&quiet).unwrap();
        assert!(nothing.contains("no Landlock") && nothing.contains("no seccomp"), "{nothing}");
        assert!(with(0, true).missing(&on.clone().hide("/a")).unwrap().contains("read and write every file"));
        assert_eq!(with(0, false).missing(&Sandbox::off()), None);
        assert_eq!(with(0, false).to_string(), "no Landlock, no seccomp");
        assert_eq!(with(7, true).to_string(), "Landlock version 7, seccomp");
        assert_eq!(with(8, true).sockets(&on), SandboxSockets::Off);
        assert_eq!(with(9, true).sockets(&on), SandboxSockets::Inside);
        assert_eq!(with(8, true).sockets(&on.sockets(SandboxSockets::On)), SandboxSockets::On);
    }
}
