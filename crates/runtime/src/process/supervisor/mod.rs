//! The program that is the parent of every process of a call or of a server.
//!
//! It is this program started again ([`supervise_if_asked`]), or another one that does the same
//! ([`set_supervisor`]). It has a session of its own, so neither it nor what it starts has the terminal of a
//! person. It closes the descriptors that it inherited. It adopts all descendants whose parents have ended
//! (`PR_SET_CHILD_SUBREAPER`), so it finds every one of them, whatever the process did: leave its group or its
//! session, fork twice, erase its environment. When the process ends, and when the runtime asks for it or
//! dies, it kills all of them, and ends once the last one is dead. If the process may write the files of a session, a file beside
//! the store says when it ran ([`super::times`]).
//!
//! A confined command runs in [`namespaces`] of its own, if the system allows them, below a first process that the
//! kernel does not let anything survive ([`first`]).
//!
//! The runtime and the supervisor talk over a pair of connected sockets ([`protocol`]). Its end on one side is
//! the sign on the other, so both notice a `SIGKILL`. A supervisor that is itself killed, which only a process
//! outside of a sandbox can do, leaves its processes to the search by mark.
//!
//! There is one on Linux only. Without one, processes are watched by a plain shell ([`super::group`]).

mod first;
mod launch;
mod namespaces;
mod program;
mod protocol;
mod start;
mod times;

use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{PoisonError, RwLock};

pub use program::supervise_if_asked;
pub(crate) use start::RuntimeWatch;
pub(super) use start::{Started, Supervision};

/// The first word of a supervisor's command line, which shows in lists of processes. It is not the name of the
/// program, so that killing all processes of that name leaves the supervisors, which then end what they started.
pub(super) const NAME: &str = "call-supervisor";

/// The only argument. Programs of other versions of the protocol, and other programs, do not know it.
const WORD: &str = "--protocol=3-90d3f7a4";

/// The argument on which a supervisor only finds out whether it can enter namespaces.
const PROBE: &str = "--namespaces=2-90d3f7a4";

/// The file that a process of this program can execute to be this program again, even after it was replaced.
const OWN: &str = "/proc/self/exe";

static PROGRAM: RwLock<Option<PathBuf>> = RwLock::new(None);

/// Names the program that supervises the processes of this one: its `main` has to call
/// [`supervise_if_asked`] first. A program that calls that itself need not name another one.
pub fn set_supervisor(program: impl Into<PathBuf>) {
    *PROGRAM.write().unwrap_or_else(PoisonError::into_inner) = Some(program.into());
}

/// Returns whether processes have a supervisor. Without one, a process that erases its environment can outlive its call.
pub fn has_supervisor() -> bool {
    program_path().is_some()
}

/// Finds out whether commands in a sandbox run in namespaces of their own, in which no number means a process outside
/// and no key means shared memory outside. A supervisor tries it; without one there are none.
pub fn has_namespaces() -> bool {
    let Some(supervisor) = program_path() else { return false };
    let mut probe = Command::new(supervisor);
    probe.arg0(NAME).arg(PROBE).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    probe.status().is_ok_and(|status| status.success())
}

fn program_path() -> Option<PathBuf> {
    PROGRAM.read().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Makes this program the supervisor, unless another one was named.
fn offer_own() {
    let mut program = PROGRAM.write().unwrap_or_else(PoisonError::into_inner);
    if program.is_none() && Path::new(OWN).exists() {
        *program = Some(OWN.into());
    }
}
