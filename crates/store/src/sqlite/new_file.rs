//! New files that exist completely or not at all.
//!
//! A file is written under a temporary name beside its path, with mode 0600. Once it is complete and synced,
//! it is given its name, unless a file of that name exists: existing files are never replaced. A process that
//! is killed leaves at most the temporary file, which nothing reads.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use super::error::OpenError;
use super::private;

/// Maximum number of temporary files beside one path.
const MOST_NAMES: u32 = 10_000;

/// A file that has no name yet. Dropping it deletes it.
pub(super) struct NewFile {
    path: PathBuf,
    temporary: PathBuf,
}

impl NewFile {
    /// Creates an empty temporary file beside a path, at which nothing may exist.
    pub(super) fn beside(path: &Path) -> Result<Self, OpenError> {
        if fs::symlink_metadata(path).is_ok() {
            return Err(OpenError::Exists { path: path.to_owned() });
        }
        let failed = |source| OpenError::Io { path: path.to_owned(), source };
        let name = path.file_name().ok_or_else(|| failed(io::ErrorKind::IsADirectory.into()))?;
        for number in 1..MOST_NAMES {
            let mut temporary = std::ffi::OsString::from(".");
            temporary.push(name);
            temporary.push(format!(".partial-{}-{number}", std::process::id()));
            let temporary = path.with_file_name(temporary);
            match private::create_file(&temporary) {
                Ok(_) => return Ok(Self { path: path.to_owned(), temporary }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(failed(error)),
            }
        }
        Err(failed(io::ErrorKind::AlreadyExists.into()))
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
    }
}

#[cfg(test)]
mod tests {
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
}
