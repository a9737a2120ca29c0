//! Making what was written durable.
//!
//! A restore is recorded once it has returned, so what it wrote has to be on disk by then; before that it may be lost, since
//! it would be done again. Many files are written before any is synced, and then they are synced side by side, so that a
//! filesystem with a journal commits them together: one after the other, each would wait for a commit of its own. Where there
//! are very many, the whole filesystem is synced at the end, if that is possible. With fewer that is not done: it would wait
//! for what everybody else has written too, such as the output of a build.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicUsize, Ordering};

/// How many files and directories are held open until they are synced. Some systems allow a process no more than 256.
const HELD: usize = 128;

/// So many times they are synced before the rest is left to the whole filesystem.
const MOST_BATCHES: usize = 8;

/// How many of them are synced at a time. Nearly all of the time is spent waiting for the disk.
const AT_A_TIME: usize = 16;

/// What has to be synced.
pub(super) struct Sync {
    device: u64,
    waiting: Vec<OwnedFd>,
    batches: usize,
    /// There are too many: the whole filesystem is synced.
    whole: bool,
}

impl Sync {
    pub(super) fn new(device: u64) -> Self {
        Self { device, waiting: Vec::new(), batches: 0, whole: false }
    }

    /// A file was written.
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

    /// Names in a directory, or its mode, were changed.
    pub(super) fn directory(&mut self, directory: BorrowedFd<'_>, device: u64) -> io::Result<()> {
        match self.whole && device == self.device {
            true => Ok(()),
            false => self.file(directory.try_clone_to_owned()?, device),
        }
    }

    pub(super) fn finish(self, root: BorrowedFd<'_>) -> io::Result<()> {
        if self.whole {
            sync_filesystem(root)?;
        }
        sync_all(&self.waiting)
    }
}

/// Syncs files side by side. All of them are, even if one fails.
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
        // One that cannot be started is missed by nobody: this thread does what is left.
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
