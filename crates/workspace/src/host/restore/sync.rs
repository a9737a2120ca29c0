//! Makes writes durable.
//!
//! A restore is recorded once it has returned, so its writes must be durable by then. Before that they may be
//! lost, since the restore would be repeated. Many files are written before any is synced, and then they are
//! synced in parallel, so that a journaling filesystem commits them together; synced one by one, each would
//! wait for its own commit. Very many files are synced with the whole filesystem at the end, if that is
//! possible. With fewer that would be too slow, because it also waits for the writes of other processes, such
//! as the output of a build.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Maximum number of files and directories to keep open until they are synced. Some systems allow a process
/// no more than 256.
const HELD: usize = 128;

/// Maximum number of batches before the rest is left to a sync of the whole filesystem.
const MOST_BATCHES: usize = 8;

/// Number of parallel syncs. Nearly all of the time is spent waiting for the disk.
const AT_A_TIME: usize = 16;

/// Files and directories to be synced.
pub(super) struct Sync {
    device: u64,
    waiting: Vec<OwnedFd>,
    batches: usize,
    /// True if there are too many, so that the whole filesystem is synced.
    whole: bool,
}

impl Sync {
    pub(super) fn new(device: u64) -> Self {
        Self { device, waiting: Vec::new(), batches: 0, whole: false }
    }

    /// Adds a written file.
    pub(super) fn file(&mut self, file: OwnedFd, device: u64) -> io::Result<()> {
        if self.whole && device == self.device {
            return Ok(());
        }
        self.waiting.push(file);
        if self.waiting.len() < HELD {
            return Ok(());
        }
        self.batches += 1;
        self.whole = cfg!(target_os = "linux") && self.batches >= MOST_BATCHES;
        sync_all(&std::mem::take(&mut self.waiting))
    }

    /// Adds a directory whose entries or mode have changed.
    pub(super) fn directory(&mut self, directory: BorrowedFd<'_>, device: u64) -> io::Result<()> {
        if self.whole && device == self.device {
            Ok(())
        } else {
            self.file(directory.try_clone_to_owned()?, device)
        }
    }

    pub(super) fn finish(self, root: BorrowedFd<'_>) -> io::Result<()> {
        if self.whole {
            sync_filesystem(root)?;
        }
        sync_all(&self.waiting)
    }
}

/// Syncs files in parallel. All of them are synced, even if one fails.
fn sync_all(files: &[OwnedFd]) -> io::Result<()> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut result = Ok(());
        while let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
            result = result.and(rustix::fs::fsync(file.as_fd()).map_err(io::Error::from));
        }
        result
    };
    std::thread::scope(|scope| {
        let helpers = files.len().min(AT_A_TIME).saturating_sub(1);
        // A helper thread that cannot be started is not needed: this thread does the rest.
        let helpers: Vec<_> =
            (0..helpers).map_while(|_| std::thread::Builder::new().spawn_scoped(scope, work).ok()).collect();
        helpers.into_iter().fold(work(), |result, helper| {
            result.and(helper.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        })
    })
}

#[cfg(target_os = "linux")]
fn sync_filesystem(root: BorrowedFd<'_>) -> io::Result<()> {
    Ok(rustix::fs::syncfs(root)?)
}

#[cfg(not(target_os = "linux"))]
fn sync_filesystem(root: BorrowedFd<'_>) -> io::Result<()> {
    Ok(rustix::fs::fsync(root)?)
}
