//! Removes copies.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::FlockOperation;

use super::{DirectoryLock, UNFINISHED, lock_directory};

/// Removes a copy and everything in it, also directories that cannot be written. Links are not followed. It is not an error if
/// it does not exist.
pub fn remove_copy(directory: &Path) -> io::Result<()> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            allow(directory)?;
            fs::remove_dir_all(directory)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// Gives the owner all permissions of the directories below one.
fn allow(directory: &Path) -> io::Result<()> {
    let mut open = vec![directory.to_owned()];
    while let Some(directory) = open.pop() {
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o700))?;
        for entry in fs::read_dir(&directory)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                open.push(entry.path());
            }
        }
    }
    Ok(())
}

/// A copy that no process is making or using. As long as this value lives, it stays so.
#[derive(Debug)]
pub struct UnclaimedCopy {
    path: PathBuf,
    name: String,
    _lock: DirectoryLock,
}

impl UnclaimedCopy {
    /// Returns the name of the session that the copy was made for. `None` if its making was interrupted.
    pub fn session(&self) -> Option<&str> {
        (!self.name.ends_with(UNFINISHED)).then_some(&*self.name)
    }

    /// Removes it, and returns its path.
    pub fn remove(self) -> io::Result<PathBuf> {
        remove_copy(&self.path)?;
        Ok(self.path)
    }
}

/// Returns the copies that no process is making or using. Those of sessions that were recorded are among them, so the store has to be
/// asked afterwards: a session is recorded before its maker releases the copy.
pub fn unclaimed_copies(place: &Path) -> Vec<UnclaimedCopy> {
    // A process that is about to lock its new copy holds this too.
    let Ok(_alone) = lock_directory(place, FlockOperation::NonBlockingLockExclusive) else {
        return Vec::new();
    };
    let Ok(entries) = fs::read_dir(place) else { return Vec::new() };
    let directories = entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let unclaimed = directories.filter_map(|entry| {
        let (path, name) = (entry.path(), entry.file_name().into_string().ok()?);
        let lock = lock_directory(&path, FlockOperation::NonBlockingLockExclusive).ok()?;
        Some(UnclaimedCopy { path, name, _lock: lock })
    });
    unclaimed.collect()
}
