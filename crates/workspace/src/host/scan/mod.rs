//! Walking a directory: what is there, what changed, what is not covered.
//!
//! One thread goes through the tree with a handle for each directory above it, asks for the state of every name, and reads
//! only files whose state is not that of the last scan. What the walk finds is an [index](super::index); what it reads and
//! the store does not have yet is given out as objects.
//!
//! Who writes while a scan runs is not kept out. A file that changes while it is read is read again, and is not trusted the
//! next time. What vanishes while it is looked at is absent.

mod leaf;
mod report;
mod seal;
mod walk;

use std::collections::HashSet;
use std::os::fd::{AsFd as _, BorrowedFd};

use backstitch_core::object::{Object, ObjectId};
use backstitch_core::ports::{Objects, WorkspaceError};

pub(crate) use leaf::{has_content, hash_link};
pub(crate) use report::report;
pub(crate) use seal::manifest_of;

use super::index::DirIndex;
use super::rules::{Ignores, Rules};
use super::sys;
use crate::coverage::Coverage;
use crate::options::IgnoredBudget;
use walk::WalkContext;

/// How much a scan may take in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ScanLimits {
    /// A larger file is left out.
    pub(crate) file_bytes: u64,
    /// A larger ignored directory is left out.
    pub(crate) ignored: IgnoredBudget,
    /// More new content than this is an error.
    pub(crate) new_bytes: u64,
    /// A file that would bring more new content than what is left of this is left out.
    pub(crate) spend: Option<u64>,
}

/// What a scan is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// All content is wanted.
    Capture,
    /// What is new is not wanted, so it is not read.
    Restore,
}

/// A scan that runs.
pub(crate) struct Scan<'a> {
    pub(crate) rules: &'a Rules,
    pub(crate) ignores: &'a mut Ignores,
    /// What stays uncovered whatever it is now.
    pub(crate) fixed: &'a Coverage,
    pub(crate) objects: &'a dyn Objects,
    pub(crate) limits: ScanLimits,
    pub(crate) purpose: Purpose,
    /// Objects that the store does not have.
    pub(crate) new: Vec<Object>,
    /// How many files and links were read.
    pub(crate) read: usize,
    new_bytes: u64,
    given: HashSet<ObjectId>,
    path: Vec<u8>,
    /// What is left of the budget of the ignored directory that is being walked.
    budget: Option<IgnoredBudget>,
    started: leaf::ScanStart,
}

enum Stop {
    Failed(WorkspaceError),
    /// The ignored directory that is being walked is too large.
    OverBudget,
    /// The directory that is being walked was removed meanwhile.
    Gone,
}

impl From<WorkspaceError> for Stop {
    fn from(error: WorkspaceError) -> Self {
        Self::Failed(error)
    }
}

impl<'a> Scan<'a> {
    pub(crate) fn new(
        rules: &'a Rules,
        ignores: &'a mut Ignores,
        fixed: &'a Coverage,
        objects: &'a dyn Objects,
        limits: ScanLimits,
        purpose: Purpose,
    ) -> Self {
        Self {
            rules,
            ignores,
            fixed,
            objects,
            limits,
            purpose,
            new: Vec::new(),
            read: 0,
            new_bytes: 0,
            given: HashSet::new(),
            path: Vec::new(),
            budget: None,
            started: leaf::ScanStart::now(),
        }
    }

    /// Walks the workspace.
    pub(crate) fn root(
        &mut self,
        root: BorrowedFd<'_>,
        previous: Option<DirIndex>,
    ) -> Result<DirIndex, WorkspaceError> {
        // A handle of its own, so that reading names starts at the first one.
        let directory = sys::open_directory(root, ".").map_err(|error| sys::io_error(&[], error))?;
        let found = sys::look_at(&directory).map_err(|error| sys::io_error(&[], error))?;
        let walked =
            self.directory(directory.as_fd(), found, previous, WalkContext { refused: false, depth: 0 });
        walked.map_err(|stop| match stop {
            Stop::Failed(error) => error,
            Stop::OverBudget => {
                WorkspaceError::Limit { reason: "an ignored directory is too large".to_owned() }
            }
            Stop::Gone => sys::io_error(&[], std::io::Error::from(std::io::ErrorKind::NotFound)),
        })
    }
}
