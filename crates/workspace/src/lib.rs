//! Host directories as workspaces of Backstitch.
//!
//! A [`HostWorkspace`] is a directory whose state can be captured, compared and restored, regardless of the
//! cause of a change. A capture returns a root: a tree in git's format and a manifest of everything that git
//! cannot represent, both determined by content alone. With a stat cache, a capture costs a walk and reading
//! the changed files. A restore writes only differences, can be interrupted anywhere and repeated, and never
//! touches paths that the root does not cover. The coverage is a value ([`Coverage`]), and uncovered paths
//! are always reported.
//!
//! A [`HostFilesystem`] is the same directory from the view of tools: confined to its root, even against
//! links that are put in place while a tool runs, and closed where the runtime keeps its own files.
//! [`export`] writes roots as a git repository.
//!
//! This is tested on Linux, and macOS should work. On other systems opening a directory fails with
//! [`WorkspaceError::Unsupported`](backstitch_core::ports::WorkspaceError::Unsupported).

#![cfg_attr(not(unix), allow(dead_code, reason = "only host directories use it"))]

mod ahead;
mod coverage;
pub mod export;
mod git_head;
#[cfg(unix)]
mod host;
mod options;
#[cfg(unix)]
mod temporary;
#[cfg(not(unix))]
mod unsupported;

pub use ahead::ObjectsAhead;
pub use backstitch_filesystem::format::{diff, read_at};
pub use coverage::{Coverage, InvalidCoverage};
pub use git_head::GitHead;
#[cfg(unix)]
pub use host::{
    Checkout, CheckoutMark, CopyOptions, HostFilesystem, HostWorkspace, IsolateError, Progress, ProjectCopy,
    UnclaimedCopy, copy_project, remove_copy, restore_copy, supports_reflinks, unclaimed_copies,
};
pub use options::{IgnoredBudget, OpenOptions};
#[cfg(not(unix))]
pub use unsupported::{HostFilesystem, HostWorkspace};
