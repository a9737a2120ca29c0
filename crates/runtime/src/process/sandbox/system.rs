//! Landlock, capabilities and seccomp, applied to the calling thread.
//!
//! Nothing here can be undone: the thread has to end after it has started its process.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access as _, AccessFs, BitFlags, CompatLevel, Compatible as _, LandlockStatus, PathBeneath, PathFd,
    Ruleset, RulesetAttr as _, RulesetCreatedAttr as _, RulesetStatus, Scope,
};
use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
};
use serde::{Deserialize, Serialize};

/// The newest version of Landlock whose rights are known here. An older system enforces those that it has.
const NEWEST: ABI = ABI::V9;

/// The first version of Landlock that limits which sockets of the file system a process can connect to.
const CONFINES_SOCKETS: u32 = 9;

/// Devices that every program may write, and directories of such devices.
const DEVICES: [&str; 6] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/tty", "/dev/pts", "/dev/shm"];

/// Capabilities that a process of the superuser keeps: those over files, users and its own processes. The
/// others reach past the files: loading of kernel code, raw devices, mounts, the clock, the network's setup.
const KEPT: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::KILL)
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::SETUID)
    .union(CapabilitySet::SETPCAP)
    .union(CapabilitySet::SETFCAP)
    .union(CapabilitySet::SYS_CHROOT)
    .union(CapabilitySet::SYS_NICE)
    .union(CapabilitySet::IPC_LOCK)
    .union(CapabilitySet::AUDIT_WRITE)
    .union(CapabilitySet::NET_BIND_SERVICE);

/// `EPERM`, which refused calls of the system return.
const NOT_PERMITTED: u32 = 1;

/// `AF_UNIX`.
const LOCAL_SOCKETS: u64 = 1;

/// The bit of the numbers of the x32 interface, which the filter does not see as another architecture.
#[cfg(target_arch = "x86_64")]
const X32: i64 = 0x4000_0000;

#[cfg(target_arch = "x86_64")]
mod number {
    pub(super) const SOCKET: i64 = 41;
    pub(super) const CONNECT: i64 = 42;
    pub(super) const BIND: i64 = 49;
}

/// The generic numbers, of all architectures since 2012.
#[cfg(not(target_arch = "x86_64"))]
mod number {
    pub(super) const SOCKET: i64 = 198;
    pub(super) const BIND: i64 = 200;
    pub(super) const CONNECT: i64 = 203;
}

/// `io_uring_setup`, `io_uring_enter` and `io_uring_register`: a ring can open sockets without `socket`.
const RINGS: [i64; 3] = [425, 426, 427];

/// The limits of a thread. They can be sent to the process that applies them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in super::super) struct Limits {
    pub(super) writable: Vec<PathBuf>,
    pub(super) network: bool,
    /// Version of Landlock.
    pub(super) landlock: u32,
    pub(super) seccomp: bool,
    /// Whether Landlock limits the files.
    pub(super) files: bool,
}

/// Limits the calling thread, and everything that it starts.
pub(in super::super) fn enter(limits: &Limits) -> Result<(), String> {
    if limits.files {
        limit_files(&limits.writable, limits.network)?;
        drop_capabilities()?;
    }
    if !limits.network && limits.seccomp {
        refuse_network(limits.landlock)?;
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

fn limit_files(writable: &[PathBuf], network: bool) -> Result<(), String> {
    let failed = |error: landlock::RulesetError| format!("Landlock failed: {error}");
    let mut handled = AccessFs::from_write(NEWEST);
    let mut scope = Scope::from_all(NEWEST);
    if network {
        // Sockets of the file system are part of the network: an ssh agent, a database.
        handled.remove(AccessFs::ResolveUnix);
        scope.remove(Scope::AbstractUnixSocket);
    }
    // A new device node in the workspace would lead out of it.
    let mut granted = handled;
    granted.remove(AccessFs::MakeBlock | AccessFs::MakeChar);
    let devices = AccessFs::WriteFile | AccessFs::Truncate | AccessFs::IoctlDev;
    let shared = granted & !BitFlags::from(AccessFs::IoctlDev);

    let ruleset = Ruleset::default().set_compatibility(CompatLevel::BestEffort);
    let mut ruleset = ruleset.handle_access(handled).and_then(|rules| rules.scope(scope)).map_err(failed)?;
    ruleset = ruleset.set_compatibility(CompatLevel::BestEffort);
    let mut created = ruleset.create().map_err(failed)?;
    let all = writable.iter().map(|path| (path.as_path(), granted));
    let all = all.chain(
        DEVICES
            .iter()
            .map(|path| (Path::new(path), if *path == "/dev/shm" { shared } else { devices & handled })),
    );
    for (path, access) in all {
        // A path that does not exist cannot be written.
        let Ok(opened) = PathFd::new(path) else { continue };
        let access = if path.is_dir() { access } else { access & AccessFs::from_file(NEWEST) };
        if !access.is_empty() {
            created = created.add_rule(PathBeneath::new(opened, access)).map_err(failed)?;
        }
    }
    let status = created.restrict_self().map_err(failed)?;
    match status.ruleset {
        RulesetStatus::NotEnforced => Err("Landlock is not enforced".to_owned()),
        RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced => Ok(()),
    }
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

/// Refuses sockets, except pairs of connected ones, to the calling thread and everything that it starts.
/// Sockets of the file system are refused too, unless this version of Landlock confines them.
pub(super) fn refuse_network(landlock: u32) -> Result<(), String> {
    let failed = |error: &dyn std::fmt::Display| format!("seccomp failed: {error}");
    let filter = network_filter(landlock >= CONFINES_SOCKETS).map_err(|error| failed(&error))?;
    seccompiler::apply_filter(&filter).map_err(|error| failed(&error))
}

fn network_filter(sockets_are_confined: bool) -> Result<BpfProgram, seccompiler::BackendError> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
    // A call without rules always matches.
    rules.extend(RINGS.map(|number| (number, Vec::new())));
    if sockets_are_confined {
        let is_other = SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, LOCAL_SOCKETS)?;
        rules.insert(number::SOCKET, vec![SeccompRule::new(vec![is_other])?]);
    } else {
        rules.extend([number::SOCKET, number::CONNECT, number::BIND].map(|number| (number, Vec::new())));
    }
    #[cfg(target_arch = "x86_64")]
    for (number, of_number) in rules.clone() {
        rules.insert(number | X32, of_number);
    }
    let architecture = std::env::consts::ARCH.try_into()?;
    SeccompFilter::new(rules, SeccompAction::Allow, SeccompAction::Errno(NOT_PERMITTED), architecture)?
        .try_into()
}
