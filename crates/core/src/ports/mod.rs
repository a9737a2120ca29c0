//! Ports: traits behind which the world lies.
//!
//! Each trait stands beside the plain data that it carries. Adapters live in crates of their own, and every adapter of a port
//! passes the same conformance suite. Traits that wait are object-safe and give boxed futures that name no runtime.

mod filesystem;
mod path;
mod policy;
mod process;
mod store;
mod store_error;
mod workspace;

use std::pin::Pin;

pub use filesystem::{
    Access, Entry, FileKind, Filesystem, FilesystemError, FilesystemLimits, Recursion, Stat, WriteMode,
};
pub use path::{FilePath, InvalidPath};
pub use policy::{
    Answer, AnsweredCall, Delta, Deltas, MediaBytes, Policy, PolicyError, Question, RequestInfo, wait_text,
};
pub use process::{OutputCaps, ProcessError, ProcessExit, ProcessOutcome, ProcessOutput, ProcessSpec};
pub use store::{
    Claim, Fence, Lease, Owner, Process, SavedSnapshot, Store, check_batch, fetch_large, hydrate,
};
pub use store_error::{Damage, StoreError};
pub use workspace::{
    Captured, ChangeKind, ObjectOverlay, Objects, PathChange, Rescued, Restored, Uncovered, UncoveredReason,
    Workspace, WorkspaceError,
};

pub use crate::journal::Finish;

/// A future that a port gives.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
