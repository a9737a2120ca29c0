//! Making what was written durable.
//!
//! A restore is recorded once it has returned, so what it wrote has to be on disk by then; before that it may be lost, since
//! it would be done again. A few files are synced one by one. Many are synced together with their filesystem, where that is
//! possible, which costs one wait and not one for each file.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

/// How many files and directories are synced one by one.
const FEW: usize = 8;

/// What has to be synced.
pub(super) struct Sync {
    device: u64,
    waiting: Vec<OwnedFd>,
    many: bool,
}

impl Sync {
    pub(super) fn new(device: u64) -> Self {
        Self { device, waiting: Vec::new(), many: false }
    }

    /// A file was written.
    pub(super) fn file(&mut self, file: OwnedFd, device: u64) -> io::Result<()> {
        if device != self.device || (cfg!(not(target_os = "linux")) && self.waiting.len() >= FEW) {
            // Another filesystem is mounted there, or there is no syncing of whole filesystems.
            rustix::fs::fsync(&file)?;
        } else if !self.many {
            self.waiting.push(file);
            if self.waiting.len() > FEW && cfg!(target_os = "linux") {
                self.many = true;
                self.waiting.clear();
            }
        }
        Ok(())
    }

    /// Names in a directory, or its mode, were changed.
    pub(super) fn directory(&mut self, directory: BorrowedFd<'_>, device: u64) -> io::Result<()> {
        match self.many && device == self.device {
            true => Ok(()),
            false => self.file(directory.try_clone_to_owned()?, device),
        }
    }

    pub(super) fn finish(self, root: BorrowedFd<'_>) -> io::Result<()> {
        if self.many {
            sync_filesystem(root)?;
        }
        for file in &self.waiting {
            rustix::fs::fsync(file.as_fd())?;
        }
        Ok(())
    }
}

#[cfg(target_os = "linux")]
fn sync_filesystem(root: BorrowedFd<'_>) -> io::Result<()> {
    Ok(rustix::fs::syncfs(root)?)
}

#[cfg(not(target_os = "linux"))]
fn sync_filesystem(root: BorrowedFd<'_>) -> io::Result<()> {
    Ok(rustix::fs::fsync(root)?)
}
