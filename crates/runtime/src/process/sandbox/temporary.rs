//! Private directories among the temporary files of the system, and what killed processes have left of them.
//!
//! The name of a directory holds a call, or an id of its own, and the process that created it, which also holds a lock on it. So a directory that
//! a killed process has left is found and removed, and that of a running process is not, whether that is another
//! process with the same number, or one in another namespace of processes. The first directory of a process, and
//! [`remove_left_temporaries`], remove all that was left; recovery removes those of its calls.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Once, PoisonError};

use backstitch_core::id::CallId;
use rustix::process::Pid;

use super::super::identity;
use crate::{SystemClock, fresh_ids};

/// The number of names that are tried. A name is taken only if an earlier directory could not be removed.
const MOST_NAMES: u32 = 100;

/// How the names begin.
const PREFIX: &str = "backstitch-";

/// Length of an id in a name.
const ID_LENGTH: usize = 36;

/// A directory that only this user can read. Dropping it removes it, and if this process is killed, a later one
/// does.
#[derive(Debug)]
pub struct PrivateDirectory {
    path: PathBuf,
    /// Locked as long as the directory is in use. Some file systems have no locks.
    _lock: Option<File>,
}

impl PrivateDirectory {
    /// Creates a directory among the temporary files of the system.
    pub fn new() -> io::Result<Self> {
        Self::below(&std::env::temp_dir())
    }

    /// Creates a directory below another one. Only below that of the temporary files of the system is it removed after a
    /// kill.
    pub fn below(place: &Path) -> io::Result<Self> {
        let ids = fresh_ids(Arc::new(SystemClock::default())).map_err(io::Error::other)?;
        Self::create(place, ids.next())
    }

    /// Creates the directory of a call.
    fn create(place: &Path, call: CallId) -> io::Result<Self> {
        static FIRST: Once = Once::new();
        FIRST.call_once(|| drop(remove_left_temporaries()));
        let own = Pid::from_raw(std::process::id().cast_signed());
        let started = own.and_then(identity::started).unwrap_or_default();
        let name = format!("{}{}-{started}", prefix(call), std::process::id());
        let place = place.canonicalize()?;
        let mut last = io::Error::other("every name is taken");
        for number in 0..MOST_NAMES {
            let path = place.join(if number == 0 { name.clone() } else { format!("{name}-{number}") });
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => match lock_created(&path) {
                    Ok(lock) => return Ok(Self { path, _lock: lock }),
                    Err(error) => last = error,
                },
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => last = error,
                Err(error) => return Err(error),
            }
        }
        Err(last)
    }

    /// Its path, without links.
    pub fn path(&self) -> &Path {
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
        let directory = Arc::new(PrivateDirectory::create(&std::env::temp_dir(), call)?);
        *shared = Some(directory.clone());
        Ok(directory)
    }

    /// Removes the directory. All processes of the call must have ended.
    pub(in super::super) fn remove(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

fn prefix(call: CallId) -> String {
    format!("{PREFIX}{call}-")
}

/// Locks a directory that was just created. Before that, a process in another namespace of processes may take it for one that was left, and
/// remove it: then this fails. Returns `None` where the file system has no locks.
fn lock_created(path: &Path) -> io::Result<Option<File>> {
    let directory = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(error),
        // Without a free descriptor it is used without a lock: another name would not help.
        Err(_) => return Ok(None),
        Ok(directory) => directory,
    };
    match directory.try_lock() {
        Ok(()) if is_at(&directory, path) => Ok(Some(directory)),
        Ok(()) | Err(fs::TryLockError::WouldBlock) => Err(io::Error::other("it is being removed")),
        Err(fs::TryLockError::Error(_)) => Ok(None),
    }
}

fn is_at(opened: &File, path: &Path) -> bool {
    let (opened, named) = (opened.metadata(), fs::symlink_metadata(path));
    matches!((opened, named), (Ok(opened), Ok(named)) if (opened.dev(), opened.ino()) == (named.dev(), named.ino()))
}

/// Removes the directories that killed processes have left for a call.
pub(in super::super) fn remove_left(call: CallId) {
    remove_left_below(&std::env::temp_dir(), &prefix(call));
}

/// Returns the directories among the temporary files of the system that killed processes of this user have left: those of
/// calls, servers and engines, with what these wrote there.
pub fn left_temporaries() -> Vec<PathBuf> {
    left(&std::env::temp_dir(), PREFIX).map(|(path, _)| path).collect()
}

/// Removes the directories of [`left_temporaries`], and returns those that are gone.
pub fn remove_left_temporaries() -> Vec<PathBuf> {
    let mut found = remove_left_below(&std::env::temp_dir(), PREFIX);
    found.retain(|path| !path.exists());
    found
}

/// Removes what was left, each directory while its lock is held: a process that is about to use it notices that.
fn remove_left_below(place: &Path, prefix: &str) -> Vec<PathBuf> {
    let removed = left(place, prefix).map(|(path, _lock)| {
        remove(&path);
        path
    });
    removed.collect()
}

/// Returns the directories that killed processes have left, with their locks.
fn left(place: &Path, prefix: &str) -> impl Iterator<Item = (PathBuf, File)> {
    let entries = fs::read_dir(place).into_iter().flatten().flatten();
    let named = entries.filter(move |entry| {
        let name = entry.file_name();
        name.to_str().is_some_and(|name| name.starts_with(prefix) && is_of_ended_process(name))
    });
    named.filter_map(|entry| lock_left(&entry.path()).map(|lock| (entry.path(), lock)))
}

/// Whether a name is one of a directory whose process does not run here.
fn is_of_ended_process(name: &str) -> bool {
    let Some((id, rest)) = name.strip_prefix(PREFIX).and_then(|rest| rest.split_at_checked(ID_LENGTH)) else {
        return false;
    };
    let mut parts = rest.split('-').skip(1);
    let process = parts.next().and_then(|number| number.parse().ok()).and_then(Pid::from_raw);
    let (Ok(_), Some(process), Some(started)) = (id.parse::<CallId>(), process, parts.next()) else {
        return false;
    };
    identity::started(process).as_deref() != Some(started)
}

/// Opens and locks a directory of this user, unless another process has locked it.
fn lock_left(path: &Path) -> Option<File> {
    let own = rustix::process::geteuid().as_raw();
    if !fs::symlink_metadata(path).is_ok_and(|found| found.is_dir() && found.uid() == own) {
        return None;
    }
    let mut opened = File::open(path);
    if opened.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied) {
        let _ = fs::set_permissions(path, fs::Permissions::from_mode(0o700));
        opened = File::open(path);
    }
    opened.ok().filter(|directory| !matches!(directory.try_lock(), Err(fs::TryLockError::WouldBlock)))
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
        // Not among the temporary files of the system, where every process removes what was left.
        let place = tempfile::tempdir().unwrap();
        let place = place.path();
        let remove_left = || drop(remove_left_below(place, &prefix(call)));
        let first = PrivateDirectory::create(place, call).unwrap();
        let second = PrivateDirectory::create(place, call).unwrap();
        assert_ne!(first.path(), second.path());
        let mode = fs::metadata(first.path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        fs::create_dir(first.path().join("locked")).unwrap();
        fs::write(first.path().join("locked/file"), "text").unwrap();
        fs::set_permissions(first.path().join("locked"), fs::Permissions::from_mode(0o500)).unwrap();
        remove_left();
        assert!(first.path().join("locked/file").exists(), "this process still runs");
        let (first_path, second_path) = (first.path().to_owned(), second.path().to_owned());
        drop((first, second));
        assert!(!first_path.exists() && !second_path.exists());
        // As a process with this number and another start time has left it.
        let left = place.join(format!("{}{}-1", prefix(call), std::process::id()));
        fs::create_dir(&left).unwrap();
        // As that of a process in another namespace, whose number means nothing here.
        let locked = File::open(&left).unwrap();
        locked.lock().unwrap();
        remove_left();
        assert!(left.exists(), "it is in use");
        drop(locked);
        fs::set_permissions(&left, fs::Permissions::from_mode(0o000)).unwrap();
        remove_left();
        assert!(!left.exists());
    }

    #[test]
    fn a_new_directory_that_is_being_removed_is_not_used() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("new");
        assert_eq!(lock_created(&path).unwrap_err().kind(), io::ErrorKind::NotFound);
        fs::create_dir(&path).unwrap();
        let remover = File::open(&path).unwrap();
        remover.lock().unwrap();
        assert!(lock_created(&path).is_err(), "another process holds its lock");
        drop(remover);
        assert!(lock_created(&path).unwrap().is_some());
    }

    #[test]
    fn only_names_of_ended_processes_are_those_of_remainders() {
        let clock = Arc::new(FixedClock::at("2026-01-02T03:04:05Z".parse().unwrap()));
        let call: CallId = IdStream::from_seed([12; 32], clock).next();
        assert!(is_of_ended_process(&format!("backstitch-{call}-{}-1", std::process::id())));
        assert!(is_of_ended_process(&format!("backstitch-{call}-{}-1-7", std::process::id())));
        let own = identity::started(Pid::from_raw(std::process::id().cast_signed()).unwrap()).unwrap();
        for name in [
            format!("backstitch-{call}-{}-{own}", std::process::id()),
            format!("backstitch-{call}"),
            format!("backstitch-{call}-1"),
            format!("backstitch-{call}-x-1"),
            "backstitch-0/locks".to_owned(),
            "backstitch-test-XXXXXXXXXXXXXXXXXXXXXXXXXXXX-1-1".to_owned(),
            "backstitch-ääääääääääääääääääääääääääääääääääääääää-1-1".to_owned(),
        ] {
            assert!(!is_of_ended_process(&name), "{name}");
        }
    }
}
