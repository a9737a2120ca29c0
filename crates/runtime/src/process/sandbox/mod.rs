//! Confinement of processes: which files they may write, and which programs they can reach.
//!
//! On Linux, Landlock limits the files, and seccomp the calls of the system: sockets, terminals, limits of other
//! processes. Both apply to a thread and are inherited by what it starts, for good. So a thread of its own confines
//! itself, starts the process and ends; the rest of this process stays free. Or [`Limits`] are passed to another
//! program, which enters them itself. A confined process keeps its limits whatever it executes, and so do all of its
//! descendants.
//!
//! What may be written: the workspace (unless it is read-only), a private temporary directory of the call, the
//! devices that every program expects, and the configured paths. Everything can be read but what is hidden: files
//! with keys, and what a person adds. Landlock has no right
//! for metadata: a process can change the mode, the owner and the times of a file outside, but not its content.
//!
//! A system without Landlock or seccomp runs processes without what it lacks. [`probe`] reports that, and it
//! is noted in the journal.

#[cfg(target_os = "linux")]
mod calls;
#[cfg(unix)]
mod confinement;
mod hiding;
mod paths;
#[cfg(unix)]
mod refusals;
mod support;
#[cfg(target_os = "linux")]
mod system;
#[cfg(unix)]
mod temporary;

#[cfg(unix)]
pub(super) use confinement::Confinement;
pub use hiding::hide_secrets;
pub use paths::resolve_writable;
pub(crate) use support::unprotected;
pub use support::{SandboxSupport, probe};
#[cfg(target_os = "linux")]
pub(super) use system::{Limits, enter};
#[cfg(unix)]
pub use temporary::{PrivateDirectory, left_temporaries, remove_left_temporaries};
#[cfg(unix)]
pub(super) use temporary::{SharedDirectory, remove_left};
