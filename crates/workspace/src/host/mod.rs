//! Host directories: scan, capture, restore, confinement.

mod cache;
mod capture;
mod filesystem;
mod git_head;
mod index;
mod isolate;
mod lock;
mod merge;
mod open_files;
mod private;
mod repositories;
mod restore;
mod root;
mod rules;
mod scan;
mod sweep;
mod sys;
mod workspace;

pub use filesystem::HostFilesystem;
pub use isolate::{
    Checkout, CheckoutMark, CopyOptions, IsolateError, ProjectCopy, UnclaimedCopy, copy_project, remove_copy,
    restore_copy, supports_reflinks, unclaimed_copies,
};
pub use restore::Progress;
pub use workspace::HostWorkspace;
