//! The limits of a process, applied to the calling thread: Landlock, capabilities and seccomp.
//!
//! Nothing here can be undone: the thread has to end after it has started its process, or to become it.

use std::path::{Path, PathBuf};

use backstitch_core::ports::SandboxSockets;
use landlock::{
    ABI, Access as _, AccessFs, BitFlags, CompatLevel, Compatible as _, LandlockStatus, PathBeneath, PathFd,
    Ruleset, RulesetAttr as _, RulesetCreated, RulesetCreatedAttr as _, RulesetStatus, Scope,
};
use rustix::fd::OwnedFd;
use rustix::fs::{FileType, fstat};
use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};
use serde::{Deserialize, Serialize};

use super::{calls, hiding, paths};

/// The newest version of Landlock whose rights are known here. An older system enforces those that it has.
const NEWEST: ABI = ABI::V9;

/// Devices that every program may write.
const DEVICES: [&str; 3] = ["/dev/null", "/dev/zero", "/dev/full"];

/// The directory of shared memory, which every program may write.
const SHARED_MEMORY: &str = "/dev/shm";

/// What programs create terminals with, and where these are. The directory holds all terminals of the user.
const TERMINALS: [&str; 2] = ["/dev/ptmx", "/dev/pts"];

/// Capabilities that a process of the superuser keeps: those over files, users and its own processes. The
/// others reach past the files: loading of kernel code, raw devices, mounts, the clock, the network's setup,
/// programs that run with the rights of others.
const KEPT: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::KILL)
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::SETUID)
    .union(CapabilitySet::SETPCAP)
    .union(CapabilitySet::SYS_CHROOT)
    .union(CapabilitySet::SYS_NICE)
    .union(CapabilitySet::IPC_LOCK)
    .union(CapabilitySet::AUDIT_WRITE)
    .union(CapabilitySet::NET_BIND_SERVICE);

/// The limits of a thread and of everything that it starts, resolved for this system. Another program can be given
/// them as data, and enter them in its own process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in super::super) struct Limits {
    /// Paths that may be written. They hold no links; if one of them does by now, [`enter`] fails.
    #[serde(with = "paths::as_bytes")]
    pub(in super::super) writable: Vec<PathBuf>,
    /// Paths whose content cannot be read. If there are none, everything can be read.
    #[serde(with = "paths::as_bytes")]
    pub(in super::super) hidden: Vec<PathBuf>,
    /// Paths that can be read although they may lie in hidden ones: the workspace, and what was allowed by its path.
    #[serde(with = "paths::as_bytes")]
    pub(in super::super) readable: Vec<PathBuf>,
    pub(in super::super) network: bool,
    /// Sockets of this machine, as far as this system can tell them apart.
    pub(in super::super) sockets: SandboxSockets,
    pub(in super::super) terminals: bool,
    /// Whether there is a usable Landlock, which limits the files.
    pub(in super::super) landlock: bool,
    pub(in super::super) seccomp: bool,
    /// Whether a supervisor gives it namespaces of its own, where the system allows them. Threads cannot enter them.
    pub(in super::super) namespaces: bool,
}

/// Limits the calling thread, and everything that it starts.
pub(in super::super) fn enter(limits: &Limits) -> Result<(), String> {
    if limits.landlock {
        limit_files(limits)?;
        drop_capabilities()?;
    }
    if limits.seccomp {
        calls::refuse(limits.network, limits.sockets)?;
    }
    Ok(())
}

/// Returns the version of Landlock that works here, or 0. Confines the calling thread.
pub(super) fn landlock_version() -> u32 {
    let status = Ruleset::default()
        .handle_access(AccessFs::from_write(NEWEST))
        .and_then(Ruleset::create)
        .and_then(landlock::RulesetCreated::restrict_self);
    match status.map(|status| (status.ruleset, status.landlock)) {
        Ok((RulesetStatus::NotEnforced, _)) | Err(_) => 0,
        Ok((_, LandlockStatus::Available { effective_abi, .. })) => effective_abi as u32,
        Ok((_, LandlockStatus::NotEnabled | LandlockStatus::NotImplemented)) => 0,
    }
}

fn limit_files(limits: &Limits) -> Result<(), String> {
    let failed = |error: landlock::RulesetError| format!("Landlock failed: {error}");
    let mut handled = AccessFs::from_write(NEWEST);
    let mut scope = Scope::from_all(NEWEST);
    if limits.sockets == SandboxSockets::On {
        handled.remove(AccessFs::ResolveUnix);
        scope.remove(Scope::AbstractUnixSocket);
    }
    // A new device node in the workspace would lead out of it.
    let mut granted = handled;
    granted.remove(AccessFs::MakeBlock | AccessFs::MakeChar);
    if limits.sockets == SandboxSockets::Off {
        granted.remove(AccessFs::ResolveUnix);
    }
    let devices = handled & (AccessFs::WriteFile | AccessFs::Truncate | AccessFs::IoctlDev);
    // All users write there, so what is there is not inside.
    let shared = granted & !(AccessFs::IoctlDev | AccessFs::ResolveUnix);

    let ruleset = Ruleset::default().set_compatibility(CompatLevel::BestEffort);
    let reading: BitFlags<AccessFs> =
        if limits.hidden.is_empty() { BitFlags::empty() } else { AccessFs::ReadFile.into() };
    let mut ruleset =
        ruleset.handle_access(handled | reading).and_then(|rules| rules.scope(scope)).map_err(failed)?;
    ruleset = ruleset.set_compatibility(CompatLevel::BestEffort);
    let mut created = ruleset.create().map_err(failed)?;
    for path in &limits.writable {
        let opened = paths::open(path)?;
        let entries = hiding::around(path, &limits.hidden);
        if entries == [path.clone()] {
            created = allow(created, opened, path, granted)?;
            continue;
        }
        // Who can write the directory of a hidden file can move the file to a name that is not hidden. So only the
        // entries are writable.
        for entry in entries {
            // It may be gone by now, or be a link.
            let Ok(opened) = paths::open(&entry) else { continue };
            created = allow(created, opened, &entry, granted)?;
        }
    }
    if !limits.hidden.is_empty() {
        let everything = hiding::around(Path::new("/"), &limits.hidden);
        let own = limits.writable.iter().flat_map(|path| hiding::around(path, &limits.hidden));
        for path in everything.into_iter().chain(own).chain(limits.readable.iter().cloned()) {
            let Ok(opened) = paths::open(&path) else { continue };
            created = allow(created, opened, &path, AccessFs::ReadFile.into())?;
        }
    }
    let terminals = TERMINALS.iter().filter(|_| limits.terminals);
    let devices = DEVICES.iter().chain(terminals).map(|path| (path, devices));
    for (path, access) in devices.chain([(&SHARED_MEMORY, shared)]) {
        // A device that does not exist cannot be written.
        let Ok(opened) = PathFd::new(path) else { continue };
        let access: BitFlags<AccessFs> =
            if Path::new(path).is_dir() { access } else { access & AccessFs::from_file(NEWEST) };
        created = created.add_rule(PathBeneath::new(opened, access)).map_err(failed)?;
    }
    let status = created.restrict_self().map_err(failed)?;
    match status.ruleset {
        RulesetStatus::NotEnforced => Err("Landlock is not enforced".to_owned()),
        RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced => Ok(()),
    }
}

/// Grants access to a file, or to everything below a directory.
fn allow(
    rules: RulesetCreated,
    opened: OwnedFd,
    path: &Path,
    access: BitFlags<AccessFs>,
) -> Result<RulesetCreated, String> {
    let found = fstat(&opened).map_err(|error| format!("{}: {error}", path.display()))?;
    let is_directory = FileType::from_raw_mode(found.st_mode).is_dir();
    let access = if is_directory { access } else { access & AccessFs::from_file(NEWEST) };
    rules.add_rule(PathBeneath::new(opened, access)).map_err(|error| format!("Landlock failed: {error}"))
}

/// Drops capabilities that reach past the files. Executing a program does not give them back, because
/// Landlock requires that no program gains privileges.
fn drop_capabilities() -> Result<(), String> {
    let failed = |error: rustix::io::Errno| format!("capabilities cannot be dropped: {error}");
    let CapabilitySets { effective, permitted, inheritable } = capabilities(None).map_err(failed)?;
    if KEPT.contains(permitted) {
        return Ok(());
    }
    let kept = CapabilitySets {
        effective: effective.intersection(KEPT),
        permitted: permitted.intersection(KEPT),
        inheritable: inheritable.intersection(KEPT),
    };
    set_capabilities(None, kept).map_err(failed)
}
