//! The private temporary directory of a call.
//!
//! Its name holds the call and the process that created it, so that a directory that a killed process has left
//! is found and removed in recovery, and that of a running process is not.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use backstitch_core::id::CallId;
use rustix::process::Pid;

use super::super::identity;

/// The number of names that are tried. A name is taken only if an earlier directory could not be removed.
const MOST_NAMES: u32 = 100;

/// A directory that only this user can read. Dropping it removes it.
pub(super) struct PrivateDirectory {
    path: PathBuf,
}

impl PrivateDirectory {
    /// Creates the directory of a call.
    fn create(call: CallId) -> io::Result<Self> {
        let own = Pid::from_raw(std::process::id().cast_signed());
        let started = own.and_then(identity::started).unwrap_or_default();
        let name = format!("{}{}-{started}", prefix(call), std::process::id());
        let place = std::env::temp_dir().canonicalize()?;
        let mut last = io::Error::other("every name is taken");
        for number in 0..MOST_NAMES {
            let path = place.join(if number == 0 { name.clone() } else { format!("{name}-{number}") });
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(Self { path }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => last = error,
                Err(error) => return Err(error),
            }
        }
        Err(last)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for PrivateDirectory {
    fn drop(&mut self) {
        remove(&self.path);
    }
}

/// The temporary directory of a call, which is created for its first process and shared by all.
#[derive(Clone, Default)]
pub(in super::super) struct SharedDirectory(Arc<Mutex<Option<Arc<PrivateDirectory>>>>);

impl SharedDirectory {
    /// Returns the directory, and creates it if this is the first process of the call.
    pub(super) fn of_call(&self, call: CallId) -> io::Result<Arc<PrivateDirectory>> {
        let mut shared = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(directory) = &*shared {
            return Ok(directory.clone());
        }
        let directory = Arc::new(PrivateDirectory::create(call)?);
        *shared = Some(directory.clone());
        Ok(directory)
    }

    /// Removes the directory. All processes of the call must have ended.
    pub(in super::super) fn remove(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

fn prefix(call: CallId) -> String {
    format!("backstitch-{call}-")
}

/// Removes the directories that killed processes have left for a call.
pub(in super::super) fn remove_left(call: CallId) {
    let own = rustix::process::geteuid().as_raw();
    let prefix = prefix(call);
    for entry in fs::read_dir(std::env::temp_dir()).into_iter().flatten().flatten() {
        let Some(rest) =
            entry.file_name().to_str().and_then(|name| name.strip_prefix(&prefix)).map(str::to_owned)
        else {
            continue;
        };
        let mut parts = rest.split('-');
        let process = parts.next().and_then(|number| number.parse().ok()).and_then(Pid::from_raw);
        let (Some(process), Some(started)) = (process, parts.next()) else { continue };
        let is_running = identity::started(process).as_deref() == Some(started);
        let is_own =
            fs::symlink_metadata(entry.path()).is_ok_and(|found| found.is_dir() && found.uid() == own);
        if !is_running && is_own {
            remove(&entry.path());
        }
    }
}

/// Removes a directory. Directories that the process made read-only are made writable first.
fn remove(path: &Path) {
    let is_gone = |removed: io::Result<()>| match removed {
        Ok(()) => true,
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    };
    if is_gone(fs::remove_dir_all(path)) {
        return;
    }
    let mut open = vec![path.to_owned()];
    while let Some(directory) = open.pop() {
        let _ = fs::set_permissions(&directory, fs::Permissions::from_mode(0o700));
        let entries = fs::read_dir(&directory).into_iter().flatten().flatten();
        open.extend(
            entries
                .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
                .map(|entry| entry.path()),
        );
    }
    let _ = fs::remove_dir_all(path);
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use backstitch_core::id::IdStream;
    use backstitch_core::time::FixedClock;

    use super::*;

    #[test]
    fn a_directory_is_removed_when_it_is_dropped_or_left() {
        let clock = Arc::new(FixedClock::at("2026-01-02T03:04:05Z".parse().unwrap()));
        let call: CallId = IdStream::from_seed([11; 32], clock).next();
        let first = PrivateDirectory::create(call).unwrap();
        let second = PrivateDirectory::create(call).unwrap();
        assert_ne!(first.path(), second.path());
        let mode = fs::metadata(first.path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        fs::create_dir(first.path().join("locked")).unwrap();
        fs::write(first.path().join("locked/file"), "text").unwrap();
        fs::set_permissions(first.path().join("locked"), fs::Permissions::from_mode(0o500)).unwrap();
        remove_left(call);
        assert!(first.path().join("locked/file").exists(), "this process still runs");
        let (first_path, second_path) = (first.path().to_owned(), second.path().to_owned());
        drop((first, second));
        assert!(!first_path.exists() && !second_path.exists());
        // As a process with this number and another start time has left it.
        let left = std::env::temp_dir().join(format!("{}{}-1", prefix(call), std::process::id()));
        fs::create_dir(&left).unwrap();
        remove_left(call);
        assert!(!left.exists());
    }
}
