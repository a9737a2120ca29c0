//! Copies of projects, in which sessions work without touching the original.
//!
//! A copy has the files of the project with their modes and times, and a repository of its own that borrows the objects of the
//! original ([`git`]). Files are copied by reference where the file system can (`FICLONE`), else by content. Ignored directories
//! over the budget are copied only by reference; otherwise they are left out and listed, as are sockets, pipes, devices and
//! files that cannot be read. Nothing of a copy is linked to the original.
//!
//! A copy is made under a temporary name, and its maker holds a lock on it until the session is recorded. So a process that is
//! killed leaves something that [`unclaimed_copies`] finds.

mod checkout;
mod copy;
mod git;
mod reflink;
mod remove;

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use backstitch_core::code::ErrorCode;
use backstitch_core::crash_point;
use backstitch_core::ports::UncoveredPath;
use rustix::fs::{FlockOperation, flock};

pub use checkout::{Checkout, CheckoutMark};
pub use reflink::supports_reflinks;
pub use remove::{UnclaimedCopy, remove_copy, unclaimed_copies};

use self::copy::CopyWalk;
use super::private;
use crate::options::IgnoredBudget;

/// End of the name of a copy that is being made.
const UNFINISHED: &str = ".new";

/// What to copy, and where.
#[derive(Debug, Clone, Copy)]
pub struct CopyOptions<'a> {
    /// Directory of the project.
    pub project: &'a Path,
    /// Directory of all copies of a store. It is created if it does not exist.
    pub place: &'a Path,
    /// Name of the copy in its place, mostly the id of its session.
    pub name: &'a str,
    /// The runtime's own directory, which is never copied.
    pub store_directory: &'a Path,
    /// Maximum size of an ignored directory that is copied by content.
    pub ignored: IgnoredBudget,
}

/// A copy of a project. Others may not remove it as long as this value lives.
#[derive(Debug)]
pub struct ProjectCopy {
    /// Directory of the copy.
    pub directory: PathBuf,
    /// Paths that were not copied.
    pub left_out: Vec<UncoveredPath>,
    /// Whether files were copied by reference.
    pub is_reflinked: bool,
    _lock: DirectoryLock,
}

/// The lock of a directory, until it is dropped.
#[derive(Debug)]
struct DirectoryLock(File);

impl Drop for DirectoryLock {
    fn drop(&mut self) {
        // Closing the file is not enough: a child process that is being started has it too, until it executes its program.
        let _ = flock(&self.0, FlockOperation::Unlock);
    }
}

/// A project could not be copied.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IsolateError {
    /// The copy would lie in the project, or the project in the place of the copies.
    #[error("{} cannot be copied to {}: one of them lies in the other", project.display(), place.display())]
    Nested {
        /// The project.
        project: PathBuf,
        /// Directory of the copies.
        place: PathBuf,
    },
    /// The repository of the project cannot be copied.
    #[error("the repository {} cannot be copied: {reason}", path.display())]
    Repository {
        /// The repository.
        path: PathBuf,
        /// Reason for the failure.
        reason: String,
    },
    /// A file could not be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// Path of the file.
        path: PathBuf,
        /// Error of the system.
        #[source]
        source: io::Error,
    },
}

impl IsolateError {
    /// The stable code of the error.
    pub fn code(&self) -> ErrorCode {
        ErrorCode::CopyFailed
    }

    fn at(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { path, source }
    }
}

/// Copies a project.
pub fn copy_project(options: CopyOptions<'_>) -> Result<ProjectCopy, IsolateError> {
    let project = fs::canonicalize(options.project).map_err(IsolateError::at(options.project))?;
    private::create_directories(options.place).map_err(IsolateError::at(options.place))?;
    let place = fs::canonicalize(options.place).map_err(IsolateError::at(options.place))?;
    if place.starts_with(&project) || project.starts_with(&place) {
        return Err(IsolateError::Nested { project, place });
    }
    let unfinished = place.join(format!("{}{UNFINISHED}", options.name));
    let finished = place.join(options.name);
    let lock = {
        // Until the new directory is locked, nobody may take it for one that was left.
        let _making = lock_directory(&place, FlockOperation::LockShared).map_err(IsolateError::at(&place))?;
        private::create_directories(&unfinished).map_err(IsolateError::at(&unfinished))?;
        lock_directory(&unfinished, FlockOperation::NonBlockingLockExclusive)
            .map_err(IsolateError::at(&unfinished))?
    };
    let copied = fill(&options, &project, &unfinished, &finished);
    // It would be removed by the next sweep otherwise.
    let (directory, copying) = copied.inspect_err(|_| _ = remove_copy(&unfinished))?;
    Ok(ProjectCopy {
        directory,
        left_out: copying.left_out,
        is_reflinked: copying.reflinks == Some(true),
        _lock: lock,
    })
}

/// Creates the directory of a copy again that was deleted, without its files: those are restored from the store. Its
/// repository is copied from the project again, if the project still has one.
pub fn restore_copy(project: &Path, directory: &Path) -> Result<(), IsolateError> {
    private::create_directories(directory).map_err(IsolateError::at(directory))?;
    // The mode of a new directory, so that it counts as empty. Directories around it are private.
    let mode = fs::Permissions::from_mode(0o755);
    fs::set_permissions(directory, mode).map_err(IsolateError::at(directory))?;
    let Ok(project) = fs::canonicalize(project) else { return Ok(()) };
    if directory.join(".git").symlink_metadata().is_ok() {
        return Ok(());
    }
    let mut copying = CopyWalk::new(None, IgnoredBudget::default());
    git::repository(&mut copying, &project, directory, directory)
}

fn fill(
    options: &CopyOptions<'_>,
    project: &Path,
    unfinished: &Path,
    finished: &Path,
) -> Result<(PathBuf, CopyWalk), IsolateError> {
    let name = project.file_name().unwrap_or_else(|| "project".as_ref());
    let (target, directory) = (unfinished.join(name), finished.join(name));
    let mut copying = CopyWalk::new(Some(options.store_directory), options.ignored);
    copying.tree(project, &target)?;
    git::repository(&mut copying, project, &target, &directory)?;
    crash_point!("isolate.copied");
    fs::rename(unfinished, finished).map_err(IsolateError::at(finished))?;
    copying.left_out.sort_unstable();
    Ok((directory, copying))
}

/// Opens a directory and locks it.
fn lock_directory(directory: &Path, operation: FlockOperation) -> io::Result<DirectoryLock> {
    let file = File::open(directory)?;
    flock(&file, operation)?;
    Ok(DirectoryLock(file))
}
