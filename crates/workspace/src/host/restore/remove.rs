//! Deletes entries that a root does not contain, and nothing that it does not cover.

use std::os::fd::{AsFd as _, BorrowedFd};

use backstitch_core::ports::{ChangeKind, WorkspaceError};
use backstitch_filesystem::format::MAX_DEPTH;
use backstitch_filesystem::format::names::join;
use rustix::fs::{AtFlags, renameat, unlinkat};

use super::apply::{Apply, refused};
use crate::host::sys::{self, Kind, Names, is_gone};
use crate::temporary::is_temporary;

/// Maximum number of attempts to empty a directory that another process is filling.
const ATTEMPTS: usize = 3;

impl Apply<'_, '_, '_> {
    /// Deletes an entry and everything in it. Returns whether it is gone: uncovered entries stay, and so do
    /// the directories above them.
    pub(super) fn remove(
        &mut self,
        directory: BorrowedFd<'_>,
        name: &[u8],
        path: &[u8],
    ) -> Result<bool, WorkspaceError> {
        self.tick(path)?;
        self.remove_below(directory, name, path, 0)
    }

    fn remove_below(
        &mut self,
        parent: BorrowedFd<'_>,
        name: &[u8],
        path: &[u8],
        depth: usize,
    ) -> Result<bool, WorkspaceError> {
        let failed = |error| refused(path, error);
        let Some(found) = sys::entry_stat(parent, name).map_err(failed)? else { return Ok(true) };
        if let Some(reason) = self.restore.protected(path, &found)
            && !is_temporary(name)
        {
            self.restore.keep(path, reason, Some(&found));
            return Ok(false);
        }
        // Temporary and hoisted entries are not reported: they are no longer files of the workspace.
        let is_reported = !path.split(|byte| *byte == b'/').any(is_temporary);
        if found.kind != Kind::Directory {
            if self.leaves_open(path, Some(&found)) {
                return Ok(false);
            }
            if is_reported {
                self.restore.changes(path, ChangeKind::Deleted);
            }
            return self.unlink(parent, name, path, AtFlags::empty());
        }
        if depth > MAX_DEPTH {
            // Too deep to keep a handle open for each level: move it to the top and delete it there.
            let top = self.temporary();
            renameat(parent, name, self.root, &*top).map_err(|error| failed(error.into()))?;
            self.hoisted.push(top);
            return Ok(true);
        }
        for attempt in 1.. {
            let directory = match sys::open_directory_anyway(parent, name) {
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(true),
                opened => opened.map_err(failed)?,
            };
            let found = sys::file_stat(&directory).map_err(failed)?;
            self.allow(directory.as_fd(), &found).map_err(failed)?;
            let names = match Names::read(directory.as_fd()) {
                // Another process has removed it.
                Err(error) if is_gone(&error) => Names::default(),
                names => names.map_err(failed)?,
            };
            if is_reported && attempt == 1 && names.iter().next().is_none() {
                self.restore.changes(path, ChangeKind::Deleted);
            }
            let mut empty = true;
            for name in names.iter() {
                let name = name.to_bytes();
                empty &= self.remove_below(directory.as_fd(), name, &join(path, name), depth + 1)?;
            }
            if !empty {
                // It stays, without its deleted entries.
                sys::set_mode(&directory, found.mode).map_err(failed)?;
                return Ok(false);
            }
            match self.unlink(parent, name, path, AtFlags::REMOVEDIR) {
                Err(WorkspaceError::Io { source, .. })
                    if source.kind() == std::io::ErrorKind::DirectoryNotEmpty && attempt < ATTEMPTS => {}
                removed => return removed,
            }
        }
        Ok(true)
    }

    fn unlink(
        &mut self,
        parent: BorrowedFd<'_>,
        name: &[u8],
        path: &[u8],
        flags: AtFlags,
    ) -> Result<bool, WorkspaceError> {
        match unlinkat(parent, name, flags) {
            Ok(()) | Err(rustix::io::Errno::NOENT) => Ok(true),
            Err(error) => Err(refused(path, error.into())),
        }
    }

    /// Deletes directories that were too deep.
    pub(super) fn remove_hoisted(&mut self) -> Result<(), WorkspaceError> {
        while let Some(name) = self.hoisted.pop() {
            let root = self.root;
            self.remove_below(root, &name, &name.clone(), 0)?;
        }
        Ok(())
    }
}
