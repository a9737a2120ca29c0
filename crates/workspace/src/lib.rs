//! Host directories as workspaces of Backstitch.
//!
//! A [`HostWorkspace`] is a directory whose state can be captured, compared and put back, whatever changed it. Capturing gives
//! a root: a tree in git's format and a manifest of what git cannot hold, both made of content alone. A stat cache makes a
//! capture cost a walk and the files that changed. Restoring writes only what differs, can be interrupted anywhere and
//! repeated, and never touches what the root does not cover; what that is, is a value ([`Coverage`]) and is always told.
//!
//! A [`HostFilesystem`] is the same directory as tools see it: confined to its root, also against links that are put in place
//! while a tool runs, and closed where the runtime keeps its own files. [`export`] writes roots as a repository that git reads.
//!
//! Linux is where this is tested; macOS is meant to work. Elsewhere opening a directory gives
//! [`WorkspaceError::Unsupported`](backstitch_core::ports::WorkspaceError::Unsupported).

#![cfg_attr(not(unix), allow(dead_code, reason = "only host directories use it"))]

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

pub use backstitch_filesystem::format::{diff, read_at};
pub use coverage::{Coverage, InvalidCoverage};
pub use git_head::GitHead;
#[cfg(unix)]
pub use host::{HostFilesystem, HostWorkspace, Progress, RestoreAction, RestoreStep};
pub use options::{IgnoredBudget, OpenOptions};
#[cfg(not(unix))]
pub use unsupported::{HostFilesystem, HostWorkspace};
