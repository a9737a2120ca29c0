//! Operations that change files.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use backstitch_core::ports::{FilesystemError, Recursion};
use backstitch_filesystem::FilePath;
use backstitch_filesystem::format::MAX_DEPTH;
use rustix::fs::{AtFlags, Mode, OFlags, openat, renameat, unlinkat};
use rustix::io::Errno;

use super::HostFilesystem;
use super::error::{expect_file, failed, swapped};
use super::resolve::Spot;
use crate::host::sys::{self, EntryStat, Kind, Names, set_mode};
use crate::temporary::TEMPORARY;

const NEW: OFlags =
    OFlags::CREATE.union(OFlags::EXCL).union(OFlags::WRONLY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Permissions of new files, before the umask applies.
const PERMISSIONS: Mode =
    Mode::RUSR.union(Mode::WUSR).union(Mode::RGRP).union(Mode::WGRP).union(Mode::ROTH).union(Mode::WOTH);

static TEMPORARIES: AtomicU64 = AtomicU64::new(0);

impl HostFilesystem {
    pub(super) fn create(&self, path: &FilePath, bytes: &[u8]) -> Result<(), FilesystemError> {
        let spot = self.create_spot(path)?;
        self.check_not_git(path, &spot)?;
        let file =
            openat(&spot.parent, &*spot.name, NEW, PERMISSIONS).map_err(|error| failed(path, error))?;
        fill(file, bytes).map(drop).map_err(|error| {
            let _ = unlinkat(&spot.parent, &*spot.name, AtFlags::empty());
            failed(path, error)
        })
    }

    pub(super) fn overwrite(&self, path: &FilePath, bytes: &[u8]) -> Result<(), FilesystemError> {
        let spot = self.resolve_spot(path)?;
        self.check_not_git(path, &spot)?;
        let before = spot.entry_stat(path)?;
        if let Some(before) = &before {
            expect_file(path, before)?;
        }
        let number = TEMPORARIES.fetch_add(1, Ordering::Relaxed);
        let temporary = [TEMPORARY, format!("{}-w{number}", std::process::id()).as_bytes()].concat();
        let file =
            openat(&spot.parent, &*temporary, NEW, PERMISSIONS).map_err(|error| failed(path, error))?;
        let replaced = fill(file, bytes).and_then(|file| {
            if let Some(before) = &before {
                if rustix::process::geteuid().is_root() {
                    sys::set_owner(&file, before.owner);
                }
                set_mode(&file, before.mode)?;
            }
            Ok(renameat(&spot.parent, &*temporary, &spot.parent, &*spot.name)?)
        });
        replaced.map_err(|error| {
            let _ = unlinkat(&spot.parent, &*temporary, AtFlags::empty());
            failed(path, error)
        })
    }

    pub(super) fn append(&self, path: &FilePath, bytes: &[u8]) -> Result<(), FilesystemError> {
        let spot = self.resolve_spot(path)?;
        self.check_not_git(path, &spot)?;
        let Some(before) = spot.entry_stat(path)? else {
            let file =
                openat(&spot.parent, &*spot.name, NEW, PERMISSIONS).map_err(|error| failed(path, error))?;
            return fill(file, bytes).map(drop).map_err(|error| failed(path, error));
        };
        expect_file(path, &before)?;
        self.check_size(path, before.stamp.size.saturating_add(bytes.len() as u64))?;
        let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file =
            openat(&spot.parent, &*spot.name, flags, Mode::empty()).map_err(|error| failed(path, error))?;
        let found = sys::file_stat(&file).map_err(|error| failed(path, error))?;
        if found.kind != Kind::File {
            return Err(swapped(path, io::ErrorKind::InvalidInput.into()));
        }
        self.check_size(path, found.stamp.size.saturating_add(bytes.len() as u64))?;
        fill(file, bytes).map(drop).map_err(|error| failed(path, error))
    }

    /// Resolves a path, and creates the directories above it.
    fn create_spot(&self, path: &FilePath) -> Result<Spot, FilesystemError> {
        let (Some(above), Some(name)) = (path.parent(), path.name()) else {
            return Err(FilesystemError::IsDirectory { path: path.to_string() });
        };
        match self.spot(path) {
            Err(FilesystemError::NotFound { .. }) => {
                let parent = self.make(&above)?;
                Ok(Spot { parent, name: name.as_bytes().to_vec() })
            }
            spot => spot,
        }
    }

    fn resolve_spot(&self, path: &FilePath) -> Result<Spot, FilesystemError> {
        let is_directory = || FilesystemError::IsDirectory { path: path.to_string() };
        match self.followed(path) {
            Ok(spot) => spot.ok_or_else(is_directory),
            // Creates only directories that the path itself names, none that a link names.
            Err(FilesystemError::NotFound { .. }) if self.present(path).is_err() => self.create_spot(path),
            Err(error) => Err(error),
        }
    }
}

fn fill(file: OwnedFd, bytes: &[u8]) -> io::Result<File> {
    let mut file = File::from(file);
    file.write_all(bytes)?;
    Ok(file)
}

pub(super) fn delete(
    path: &FilePath,
    parent: BorrowedFd<'_>,
    name: &[u8],
    found: &EntryStat,
    recursion: Recursion,
) -> Result<(), FilesystemError> {
    let failed = |error: io::Error| failed(path, error);
    match (found.kind, recursion) {
        (Kind::Directory, Recursion::All) => delete_all(parent, name, 0).map_err(failed),
        (Kind::Directory, Recursion::None) => {
            unlinkat(parent, name, AtFlags::REMOVEDIR).map_err(|error| failed(error.into()))
        }
        (Kind::File | Kind::Link | Kind::Special, _) => {
            unlinkat(parent, name, AtFlags::empty()).map_err(|error| failed(error.into()))
        }
    }
}

/// Deletes a directory and everything in it. Links are deleted, and their targets are not touched.
pub(in crate::host) fn delete_all(parent: BorrowedFd<'_>, name: &[u8], depth: usize) -> io::Result<()> {
    if depth > MAX_DEPTH {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "its directories nest too deeply"));
    }
    let directory = sys::open_directory(parent, name)?;
    for name in Names::read(directory.as_fd())?.iter() {
        match sys::entry_stat(directory.as_fd(), name)?.map(|found| found.kind) {
            Some(Kind::Directory) => delete_all(directory.as_fd(), name.to_bytes(), depth + 1)?,
            Some(_) => unlinkat(&directory, name, AtFlags::empty())?,
            None => {}
        }
    }
    Ok(unlinkat(parent, name, AtFlags::REMOVEDIR)?)
}

pub(super) fn rename(
    (from, source): (&FilePath, &Spot),
    (to, target): (&FilePath, &Spot),
) -> Result<(), FilesystemError> {
    if target.entry_stat(to)?.is_some() {
        return Err(FilesystemError::Exists { path: to.to_string() });
    }
    match rename_new(source, target) {
        Ok(()) => Ok(()),
        Err(Errno::INVAL) => {
            let source =
                io::Error::new(io::ErrorKind::InvalidInput, "a directory cannot be moved into itself");
            Err(FilesystemError::Io { path: to.to_string(), source })
        }
        Err(Errno::NOENT) => Err(FilesystemError::NotFound { path: from.to_string() }),
        Err(error) => Err(failed(to, error)),
    }
}

#[cfg(any(target_os = "linux", target_vendor = "apple"))]
fn rename_new(source: &Spot, target: &Spot) -> Result<(), Errno> {
    use rustix::fs::{RenameFlags, renameat_with};
    let flags = RenameFlags::NOREPLACE;
    match renameat_with(&source.parent, &*source.name, &target.parent, &*target.name, flags) {
        // Not every filesystem supports renaming without replacing.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
            renameat(&source.parent, &*source.name, &target.parent, &*target.name)
        }
        renamed => renamed,
    }
}

#[cfg(not(any(target_os = "linux", target_vendor = "apple")))]
fn rename_new(source: &Spot, target: &Spot) -> Result<(), Errno> {
    renameat(&source.parent, &*source.name, &target.parent, &*target.name)
}
