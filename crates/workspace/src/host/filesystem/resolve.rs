//! Resolves paths to open directories and single names.

use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use backstitch_core::ports::FilesystemError;
use backstitch_filesystem::FilePath;
use backstitch_filesystem::format::names::split;
use rustix::fs::{Mode, OFlags, mkdirat, openat, readlinkat};

use super::error::failed;
use super::{HostFilesystem, identity, is_git};
use crate::host::repositories::is_repository;
use crate::host::sys::{self, EntryStat, Kind};
use crate::temporary::is_temporary;

/// Maximum number of consecutive links, as in operating systems.
const MOST_LINKS: usize = 40;

/// How the directories above a directory are opened.
#[cfg(target_os = "linux")]
const WALK: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
#[cfg(not(target_os = "linux"))]
const WALK: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// A name in an open directory.
#[derive(Debug)]
pub(super) struct Spot {
    pub(super) parent: OwnedFd,
    pub(super) name: Vec<u8>,
}

impl Spot {
    pub(super) fn entry_stat(&self, path: &FilePath) -> Result<Option<EntryStat>, FilesystemError> {
        sys::entry_stat(self.parent.as_fd(), &*self.name).map_err(|error| failed(path, error))
    }
}

impl HostFilesystem {
    fn check_names(&self, path: &FilePath) -> Result<(), FilesystemError> {
        FilePath::within(path.as_str(), self.limits)?;
        if path.segments().any(|segment| is_temporary(segment.as_bytes())) {
            Err(FilesystemError::Reserved { path: path.to_string() })
        } else {
            Ok(())
        }
    }

    /// Opens the directory at a path. Links inside the root are followed.
    pub(super) fn directory(&self, path: &FilePath) -> Result<OwnedFd, FilesystemError> {
        self.check_names(path)?;
        self.enter(path, path.as_str().as_bytes())
    }

    /// Opens the directory at a path that may contain `..` from a link.
    fn enter(&self, path: &FilePath, text: &[u8]) -> Result<OwnedFd, FilesystemError> {
        let text: &[u8] = if text.is_empty() { b"." } else { text };
        let directory = self.root.open_dir(Path::new(OsStr::from_bytes(text)));
        let directory = OwnedFd::from(directory.map_err(|error| failed(path, error))?);
        self.check_inside(path, &directory)?;
        Ok(directory)
    }

    /// Walks up from an open directory to the root. Fails if the directory is not below the root or is the
    /// runtime's own.
    fn check_inside(&self, path: &FilePath, directory: &OwnedFd) -> Result<(), FilesystemError> {
        let failed = |error: std::io::Error| failed(path, error);
        let mut here = identity(&sys::file_stat(directory).map_err(failed)?);
        let mut above: Option<OwnedFd> = None;
        loop {
            if self.store == Some(here) {
                return Err(FilesystemError::Reserved { path: path.to_string() });
            }
            if here == self.identity {
                return Ok(());
            }
            let from = above.as_ref().unwrap_or(directory);
            let next = openat(from, "..", WALK, Mode::empty()).map_err(|error| failed(error.into()))?;
            let there = identity(&sys::file_stat(&next).map_err(failed)?);
            if there == here {
                return Err(FilesystemError::Outside { path: path.to_string() });
            }
            (here, above) = (there, Some(next));
        }
    }

    /// Fails if a name lies in a repository, however it was reached, or is that of one.
    pub(super) fn check_not_git(&self, path: &FilePath, spot: &Spot) -> Result<(), FilesystemError> {
        if is_git(&spot.name) {
            return Err(FilesystemError::Repository { path: path.to_string() });
        }
        self.check_no_repository(path, &spot.parent)
    }

    /// Walks up from an open directory to the root. Fails if one of them is a repository.
    fn check_no_repository(&self, path: &FilePath, directory: &OwnedFd) -> Result<(), FilesystemError> {
        let failed = |error: std::io::Error| failed(path, error);
        let mut here = identity(&sys::file_stat(directory).map_err(failed)?);
        let mut above: Option<OwnedFd> = None;
        loop {
            let from = above.as_ref().unwrap_or(directory);
            let has = |name: &&[u8]| sys::entry_stat(from.as_fd(), *name).is_ok_and(|found| found.is_some());
            if is_repository([&b"HEAD"[..], b"objects", b"commondir"].into_iter().filter(has)) {
                return Err(FilesystemError::Repository { path: path.to_string() });
            }
            if here == self.identity {
                return Ok(());
            }
            let next = openat(from, "..", WALK, Mode::empty()).map_err(|error| failed(error.into()))?;
            let named = sys::entry_stat(next.as_fd(), ".git").map_err(failed)?;
            if named.is_some_and(|named| identity(&named) == here) {
                return Err(FilesystemError::Repository { path: path.to_string() });
            }
            (here, above) = (identity(&sys::file_stat(&next).map_err(failed)?), Some(next));
        }
    }

    /// Resolves a path to a name in an open directory. The name need not exist; the directory must. The path
    /// is not the root.
    pub(super) fn spot(&self, path: &FilePath) -> Result<Spot, FilesystemError> {
        self.check_names(path)?;
        self.spot_of(path, path.as_str().as_bytes())
    }

    fn spot_of(&self, path: &FilePath, text: &[u8]) -> Result<Spot, FilesystemError> {
        let (above, name) = split(text);
        if is_temporary(name) {
            return Err(FilesystemError::Reserved { path: path.to_string() });
        }
        // The parent directory is missing or is not a directory; the in-memory filesystem returns the same error.
        let directory = || path.parent().unwrap_or_else(FilePath::root);
        let parent = self.enter(path, above).map_err(|error| missing_at(&directory(), error))?;
        let spot = Spot { parent, name: name.to_vec() };
        let found = spot.entry_stat(path)?;
        if found.is_some_and(|found| found.kind == Kind::Directory && self.store == Some(identity(&found))) {
            Err(FilesystemError::Reserved { path: path.to_string() })
        } else {
            Ok(spot)
        }
    }

    /// Resolves a path to an existing entry.
    pub(super) fn present(&self, path: &FilePath) -> Result<(Spot, EntryStat), FilesystemError> {
        let spot = self.spot(path).map_err(|error| missing_at(path, error))?;
        let missing = || FilesystemError::NotFound { path: path.to_string() };
        let found = spot.entry_stat(path)?.ok_or_else(missing)?;
        Ok((spot, found))
    }

    /// Resolves a path and follows links at its end. Returns `None` if the result is a directory without a
    /// name.
    pub(super) fn followed(&self, path: &FilePath) -> Result<Option<Spot>, FilesystemError> {
        if path.is_root() {
            return Ok(None);
        }
        self.check_names(path)?;
        let mut text = path.as_str().as_bytes().to_vec();
        for _ in 0..MOST_LINKS {
            let spot = self.spot_of(path, &text).map_err(|error| missing_at(path, error))?;
            if spot.entry_stat(path)?.is_none_or(|found| found.kind != Kind::Link) {
                return Ok(Some(spot));
            }
            let target =
                readlinkat(&spot.parent, &*spot.name, Vec::new()).map_err(|error| failed(path, error))?;
            let target = target.to_bytes();
            if target.starts_with(b"/") {
                return Err(FilesystemError::Outside { path: path.to_string() });
            }
            text.truncate(text.len() - spot.name.len());
            text.extend_from_slice(target);
            while text.ends_with(b"/") {
                text.pop();
            }
            if text.is_empty() || text.ends_with(b".") && matches!(last(&text), b"." | b"..") {
                return self.enter(path, &text).map(|_| None);
            }
        }
        Err(FilesystemError::Outside { path: path.to_string() })
    }

    /// Opens the directory at a path, and creates it and its missing parents.
    pub(super) fn make(&self, path: &FilePath) -> Result<OwnedFd, FilesystemError> {
        self.check_names(path)?;
        let mut missing = Vec::new();
        let mut here = path.clone();
        let mut directory = loop {
            match self.enter(path, here.as_str().as_bytes()) {
                Ok(directory) => break directory,
                Err(FilesystemError::NotFound { .. }) if !here.is_root() => {
                    missing.extend(here.name().map(str::to_owned));
                    here = here.parent().unwrap_or_else(FilePath::root);
                }
                // The last name is in use by something else; for its parents, that means not a directory.
                Err(FilesystemError::NotDirectory { .. }) if here == *path => {
                    return match self.spot(path) {
                        Ok(_) => Err(FilesystemError::Exists { path: path.to_string() }),
                        Err(error) => Err(error),
                    };
                }
                Err(error) => return Err(error),
            }
        };
        self.check_no_repository(path, &directory)?;
        while let Some(name) = missing.pop() {
            match mkdirat(&directory, &*name, Mode::RWXU | Mode::RWXG | Mode::RWXO) {
                Ok(()) | Err(rustix::io::Errno::EXIST) => {}
                Err(error) => return Err(failed(path, error)),
            }
            directory =
                sys::open_directory(directory.as_fd(), &*name).map_err(|error| failed(path, error))?;
        }
        Ok(directory)
    }
}

/// Names the path that an error is about if nothing was found.
fn missing_at(path: &FilePath, error: FilesystemError) -> FilesystemError {
    match error {
        FilesystemError::NotFound { .. } => FilesystemError::NotFound { path: path.to_string() },
        other => other,
    }
}

fn last(text: &[u8]) -> &[u8] {
    text.rsplit(|byte| *byte == b'/').next().unwrap_or_default()
}
