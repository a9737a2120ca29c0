//! Removes copies.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::{UNFINISHED, locked};

/// Removes a copy and everything in it, also directories that cannot be written. Links are not followed. It is no error if
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

/// Removes copies that belong to no session: those whose making was interrupted, and those of sessions that were never
/// recorded. `is_known` tells whether a session of this name exists. Copies that a process is making are left alone. Returns
/// the removed ones.
pub fn sweep_copies(place: &Path, is_known: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(place) else { return Vec::new() };
    let mut removed = Vec::new();
    for entry in entries.flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        let Some(name) = name.to_str() else { continue };
        let is_left = name.ends_with(UNFINISHED) || !is_known(name);
        if !is_left || !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        if let Ok(_lock) = locked(&path)
            && remove_copy(&path).is_ok()
        {
            removed.push(path);
        }
    }
    removed
}
