//! Host directories: scan, capture, restore, confinement.

mod cache;
mod capture;
mod filesystem;
mod git_head;
mod index;
mod lock;
mod open_files;
mod private;
mod restore;
mod root;
mod rules;
mod scan;
mod sweep;
mod sys;
mod workspace;

pub use filesystem::HostFilesystem;
pub use restore::{Progress, RestoreAction, RestoreStep};
pub use workspace::HostWorkspace;
