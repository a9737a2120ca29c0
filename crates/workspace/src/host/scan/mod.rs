//! Scans a directory for entries, changes and uncovered paths.
//!
//! One thread walks the tree with an open handle for each level. It stats every name, and reads only files
//! whose stat differs from the last scan. The result is an [index](super::index), with the objects that were
//! read and that the store does not have yet.
//!
//! Other processes may write during a scan. A file that changes while it is read is read again, and is not
//! trusted the next time. An entry that vanishes during the scan counts as absent.

mod leaf;
mod questions;
mod report;
mod seal;
mod walk;

use std::collections::{HashMap, HashSet};
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

/// Limits of a scan.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ScanLimits {
    /// Maximum size of a file; larger ones are omitted.
    pub(crate) file_bytes: u64,
    /// Maximum size of an ignored directory; larger ones are omitted.
    pub(crate) ignored: IgnoredBudget,
    /// Maximum size of new content; more is an error.
    pub(crate) new_bytes: u64,
    /// Remaining budget of new content; files that exceed it are omitted.
    pub(crate) spend: Option<u64>,
}

/// Purpose of a scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// All content is needed.
    Capture,
    /// New content is not needed, so it is not read.
    Restore,
}

/// A scan in progress.
pub(crate) struct Scan<'a> {
    pub(crate) rules: &'a Rules,
    pub(crate) ignores: &'a mut Ignores,
    /// Coverage that stays fixed, whatever the present state of its paths.
    pub(crate) fixed: &'a Coverage,
    pub(crate) objects: &'a dyn Objects,
    pub(crate) limits: ScanLimits,
    pub(crate) purpose: Purpose,
    /// Objects that the store does not have.
    pub(crate) new: Vec<Object>,
    /// Objects that the store will be asked about.
    waiting: Vec<Object>,
    waiting_bytes: u64,
    /// Objects that the store was asked about and has.
    stored: HashSet<ObjectId>,
    /// Lists of modes, by the trees that name them.
    lists: HashMap<ObjectId, ObjectId>,
    /// Number of files and links read.
    pub(crate) read: usize,
    /// Number of files, links and directories that the store was asked about and has.
    pub(crate) confirmed: usize,
    new_bytes: u64,
    /// Objects that are in the capture, wait, or turned out to be stored.
    given: HashSet<ObjectId>,
    path: Vec<u8>,
    /// Remaining budget of the ignored directory that is being walked.
    budget: Option<IgnoredBudget>,
    started: leaf::ScanStart,
}

enum Stop {
    Failed(WorkspaceError),
    /// The ignored directory exceeds its budget.
    OverBudget,
    /// The directory was removed during the walk.
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
            waiting: Vec::new(),
            waiting_bytes: 0,
            stored: HashSet::new(),
            lists: HashMap::new(),
            read: 0,
            confirmed: 0,
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
        // A separate handle, so that reading names starts at the first one.
        let directory = sys::open_directory(root, ".").map_err(|error| sys::io_error(&[], error))?;
        let found = sys::file_stat(&directory).map_err(|error| sys::io_error(&[], error))?;
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
