//! Namespaces of a confined process: its own numbers of processes, its own shared memory, and its own view of some
//! mounts.
//!
//! What has no name cannot be reached. In a namespace of its own, no number means a process outside, so it can be
//! neither signalled nor slowed down nor looked at; memory, semaphores and queues that others share have no keys there.
//! The mounts keep all paths as they are, except for three: `/proc` shows the processes inside only, `/dev/pts` holds
//! only terminals that were made inside, and `/dev/shm` is empty at first and gone afterwards.
//!
//! The superuser creates namespaces directly. An ordinary user needs a user namespace for it, in which the user stays
//! the same; files of others seem to belong to `nobody` there. Some systems do not allow that. Then a process has
//! none of the namespaces, because each of them is of use only with the others: numbers without their `/proc` would
//! confuse programs.

use std::ffi::CStr;
use std::io;
use std::path::Path;

use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use rustix::process::{
    DumpableBehavior, Pid, Signal, getegid, geteuid, set_dumpable_behavior, set_parent_process_death_signal,
    setsid,
};
use rustix::thread::UnshareFlags;

use super::protocol::Order;

/// The directory of POSIX shared memory and semaphores.
const SHARED_MEMORY: &str = "/dev/shm";

/// The directory of terminals. `/dev/ptmx` makes them in the one beside it.
const TERMINALS: &str = "/dev/pts";

/// The side on which [`copy_self`] returns.
pub(super) enum CopySide {
    /// This is the process that was copied.
    Original(Pid),
    /// This is the copy, the first process of new namespaces. The user and the group are those outside.
    Copy(Option<(u32, u32)>),
}

/// Copies this process into new namespaces, like `fork`. Fails if the system does not allow that, and if there are other
/// threads, which a copy would not have.
pub(super) fn copy_self() -> io::Result<CopySide> {
    if std::fs::read_dir("/proc/self/task")?.count() != 1 {
        return Err(io::Error::other("there are other threads"));
    }
    let user = (!geteuid().is_root()).then(|| (geteuid().as_raw(), getegid().as_raw()));
    let mut flags = UnshareFlags::NEWPID | UnshareFlags::NEWIPC | UnshareFlags::NEWNS;
    if user.is_some() {
        flags |= UnshareFlags::NEWUSER;
    }
    // The first version of `clone_args`: flags, three addresses, the signal at its end, a stack, thread-local memory.
    let signal = u64::from(Signal::CHILD.as_raw().unsigned_abs());
    let arguments: [u64; 8] = [u64::from(flags.bits()), 0, 0, 0, signal, 0, 0, 0];
    #[expect(unsafe_code, reason = "no library copies a process into namespaces")]
    // SAFETY: there is one thread, and the copy has memory and a stack of its own, as with `fork`. The arguments
    // are read during the call only.
    let copied = unsafe { libc::syscall(libc::SYS_clone3, &raw const arguments, size_of_val(&arguments)) };
    match copied {
        0 => Ok(CopySide::Copy(user)),
        number => {
            let id = i32::try_from(number).ok().filter(|number| *number > 0).and_then(Pid::from_raw);
            id.map(CopySide::Original).ok_or_else(io::Error::last_os_error)
        }
    }
}

/// Prepares the namespaces, in their first process. It dies with its parent from then on.
pub(super) fn prepare(user: Option<(u32, u32)>, order: &Order) -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    setsid()?;
    if let Some((user, group)) = user {
        map_user(user, group)?;
    }
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
    let plain = MountFlags::NOSUID | MountFlags::NOEXEC;
    mount("proc", "/proc", "proc", plain | MountFlags::NODEV, None::<&CStr>)?;
    if Path::new(TERMINALS).is_dir() {
        mount("devpts", TERMINALS, "devpts", plain, c"newinstance,ptmxmode=0666,mode=0620")?;
    }
    if Path::new(SHARED_MEMORY).is_dir() && !uses_shared_memory(order) {
        mount("tmpfs", SHARED_MEMORY, "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, c"mode=1777")?;
    }
    Ok(())
}

/// Lets the user and the group be the same inside of a user namespace.
fn map_user(user: u32, group: u32) -> io::Result<()> {
    // Otherwise these files belong to the superuser.
    set_dumpable_behavior(DumpableBehavior::Dumpable)?;
    // Without a way to drop groups, which could open files that are closed to a group.
    std::fs::write("/proc/self/setgroups", "deny")?;
    std::fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    std::fs::write("/proc/self/gid_map", format!("{group} {group} 1"))?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    Ok(())
}

/// Whether a process needs files that lie in the directory of shared memory, or is allowed to write all devices.
fn uses_shared_memory(order: &Order) -> bool {
    let writable = || order.limits.iter().flat_map(|limits| &limits.writable);
    let mut used = writable().chain([&order.directory, &order.program]);
    used.any(|path| path.starts_with(SHARED_MEMORY)) || writable().any(|path| path == Path::new("/dev"))
}
