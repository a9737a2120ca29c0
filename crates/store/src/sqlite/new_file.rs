//! New files that exist completely or not at all.
//!
//! A file is written under a temporary name beside its path, with mode 0600. Once it is complete and synced,
//! it is given its name, unless a file of that name exists: existing files are never replaced. A process that
//! is killed leaves at most the temporary file, which nothing reads, and which the next attempt at the same name
//! removes; if it was noted (`unfinished`), so does the store. A file that is being written is locked, so that it is never taken for such a remainder.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use backstitch_core::ports::OpenError;

use super::unfinished::{NoteFile, PARTIAL, create_numbered, hidden_prefix, left_files};

/// A file that has no name yet. Dropping it deletes it.
pub(super) struct NewFile {
    path: PathBuf,
    temporary: PathBuf,
    /// Locked as long as the file is written.
    _locked: File,
    /// Removed after the file.
    note: Option<NoteFile>,
}

impl NewFile {
    /// Creates an empty temporary file beside a path, at which nothing may exist.
    pub(super) fn beside(path: &Path) -> Result<Self, OpenError> {
        if fs::symlink_metadata(path).is_ok() {
            return Err(OpenError::Exists { path: path.to_owned() });
        }
        let failed = |source| OpenError::Io { path: path.to_owned(), source };
        let prefix =
            hidden_prefix(path, PARTIAL).ok_or_else(|| failed(io::ErrorKind::IsADirectory.into()))?;
        // The temporary files of earlier attempts that were killed. What cannot be examined stays.
        let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        for left in left_files(directory.unwrap_or(Path::new(".")), prefix.as_encoded_bytes()) {
            let _ = fs::remove_file(left);
        }
        let (temporary, file) = create_numbered(path, &prefix).map_err(failed)?;
        // Some file systems have no locks. Then the age of the file protects it.
        let _ = file.try_lock();
        Ok(Self { path: path.to_owned(), temporary, _locked: file, note: None })
    }

    /// The same, with a note beside a store: the file will hold data of it.
    pub(super) fn with_data_of(store: &Path, path: &Path) -> Result<Self, OpenError> {
        let mut file = Self::beside(path)?;
        file.note = NoteFile::new(store, &file.temporary);
        Ok(file)
    }

    /// Path of the temporary file.
    pub(super) fn temporary(&self) -> &Path {
        &self.temporary
    }

    /// Syncs the file and gives it its name. Returns its size in bytes.
    pub(super) fn publish(self) -> Result<u64, OpenError> {
        let failed = |source| OpenError::Io { path: self.path.clone(), source };
        let file = File::open(&self.temporary).map_err(failed)?;
        file.sync_all().map_err(failed)?;
        let bytes = file.metadata().map_err(failed)?.len();
        match fs::hard_link(&self.temporary, &self.path) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Err(OpenError::Exists { path: self.path.clone() });
            }
            // Some file systems have no links.
            Err(_) if fs::symlink_metadata(&self.path).is_ok() => {
                return Err(OpenError::Exists { path: self.path.clone() });
            }
            Err(_) => fs::rename(&self.temporary, &self.path).map_err(failed)?,
        }
        let _ = fs::remove_file(&self.temporary);
        // Makes the name durable as well. Some systems cannot sync a directory.
        if let Some(directory) = self.path.parent() {
            let _ = File::open(directory).and_then(|directory| directory.sync_all());
        }
        Ok(bytes)
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.temporary);
        drop(self.note.take());
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::super::unfinished::YOUNGEST;
    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn a_file_exists_completely_or_not_at_all() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("new");
        let (first, second) = (NewFile::beside(&path).unwrap(), NewFile::beside(&path).unwrap());
        fs::write(first.temporary(), "one").unwrap();
        fs::write(second.temporary(), "two").unwrap();
        assert!(!path.exists());
        assert_eq!(first.publish().unwrap(), 3);
        assert!(matches!(second.publish(), Err(OpenError::Exists { .. })));
        assert_eq!(fs::read_to_string(&path).unwrap(), "one");
        assert!(matches!(NewFile::beside(&path), Err(OpenError::Exists { .. })));
        assert_eq!(names(directory.path()), ["new"], "nothing else is left");
    }

    #[test]
    fn remainders_of_killed_attempts_are_removed_and_nothing_else() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("new");
        let written = NewFile::beside(&path).unwrap();
        let kept = [
            ".new.partial-7-1x",
            ".new.partial-",
            ".newer.partial-7-1",
            "new.partial-7-1",
            ".new.partial-9-9",
        ];
        for name in kept.iter().chain(&[".new.partial-7-1", ".new.partial-123456-2"]) {
            fs::write(directory.path().join(name), "x").unwrap();
        }
        let old = SystemTime::now() - 2 * YOUNGEST;
        for name in names(directory.path()).iter().filter(|name| *name != ".new.partial-9-9") {
            File::options().write(true).open(directory.path().join(name)).unwrap().set_modified(old).unwrap();
        }
        let other = NewFile::beside(&path).unwrap();
        let mut left = names(directory.path());
        left.sort();
        let own = |file: &NewFile| file.temporary().file_name().unwrap().to_str().unwrap().to_owned();
        let mut expected: Vec<String> = kept.iter().map(|name| (*name).to_owned()).collect();
        expected.extend([own(&written), own(&other)]);
        expected.sort();
        assert_eq!(left, expected);
    }
}
