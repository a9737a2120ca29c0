//! Detects whether the store's paths still name the open files.
//!
//! A process can keep writing to a file that was removed or replaced, and those writes would be lost. So
//! after each commit, and before it is acknowledged, the paths of the database, its log and the log's index
//! are looked up, and device and inode are compared with those of the opened files. If they differ, no
//! further write is acknowledged, and the content of the open files is copied to a new file, once.
//!
//! The files are looked up and never opened: closing any descriptor of the database would release SQLite's
//! locks on it.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use backstitch_core::ports::StoreError;
use backstitch_core::session::BoxError;
use rusqlite::Connection;
use rusqlite::config::DbConfig;
use rusqlite::types::{ToSqlOutput, ValueRef};

use super::private::{self, beside};

/// The files of an open store.
pub(super) struct WatchedFiles {
    path: PathBuf,
    files: Vec<(PathBuf, FileIdentity)>,
    /// Path of the saved copy, or the error that prevented it. Set once a replacement was detected.
    saved: OnceLock<Result<PathBuf, String>>,
}

/// Identifies a file as long as it exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileIdentity {
    #[cfg(unix)]
    device: u64,
    #[cfg(unix)]
    inode: u64,
}

impl FileIdentity {
    /// Identity of the file at a path.
    fn of(path: &Path) -> io::Result<Self> {
        let metadata = fs::metadata(path)?;
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt as _;
            Ok(Self { device: metadata.dev(), inode: metadata.ino() })
        }
        #[cfg(not(unix))]
        {
            let _ = metadata;
            Ok(Self {})
        }
    }
}

impl WatchedFiles {
    /// Watches the files of a store that a connection has opened for writing and read from. It must not be
    /// called earlier: some file systems copy a file when it is first opened for writing, which changes its
    /// inode.
    pub(super) fn new(path: &Path) -> io::Result<Self> {
        let mut files = vec![(path.to_owned(), FileIdentity::of(path)?)];
        // SQLite follows links to the database and puts the log beside the file itself.
        let real = fs::canonicalize(path)?;
        for suffix in ["-wal", "-shm"] {
            let path = beside(&real, suffix);
            // They are missing only in a read-only location.
            if let Ok(identity) = FileIdentity::of(&path) {
                files.push((path, identity));
            }
        }
        Ok(Self { path: path.to_owned(), files, saved: OnceLock::new() })
    }

    /// Returns whether all paths still name the open files. Once false, it stays false.
    pub(super) fn are_in_place(&self) -> bool {
        let same = |(path, opened): &(PathBuf, FileIdentity)| {
            FileIdentity::of(path).is_ok_and(|found| found == *opened)
        };
        self.saved.get().is_none() && self.files.iter().all(same)
    }

    /// The error of every operation after a replacement was detected.
    pub(super) fn known_replaced(&self) -> Option<StoreError> {
        self.saved.get().map(|_| self.replaced())
    }

    /// Builds the error for replaced files.
    pub(super) fn replaced(&self) -> StoreError {
        let (copy, failure) = match self.saved.get() {
            Some(Ok(copy)) => (Some(copy.clone()), None),
            Some(Err(failure)) => (None, Some(failure.clone())),
            None => (None, Some("nothing was written since".to_owned())),
        };
        StoreError::Replaced { path: self.path.clone(), copy, failure }
    }

    /// Copies the content of the open files to a new file, unless that was done before, and returns the error
    /// that names it.
    pub(super) fn save(&self, connection: &Connection) -> StoreError {
        let save = || {
            // The log at the path may belong to another store, and closing would remove it.
            let _ = connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
            let parent = self.path.parent().map_or_else(|| PathBuf::from("."), Path::to_owned);
            let mut failures = Vec::new();
            for directory in [parent, std::env::temp_dir()] {
                match self.copy_into(&directory, connection) {
                    Ok(copy) => return Ok(copy),
                    Err(error) => failures.push(format!("{}: {error}", directory.display())),
                }
            }
            Err(failures.join("; "))
        };
        self.saved.get_or_init(save);
        self.replaced()
    }

    fn copy_into(&self, directory: &Path, connection: &Connection) -> Result<PathBuf, BoxError> {
        private::create_directories(directory)?;
        let path = self.unused_name(directory)?;
        let copied = connection.execute("VACUUM INTO ?1", [as_text(&path)]);
        copied.inspect_err(|_| _ = fs::remove_file(&path))?;
        File::open(&path)?.sync_all()?;
        // Makes the name durable as well. Some systems cannot sync a directory.
        let _ = File::open(directory).and_then(|directory| directory.sync_all());
        Ok(path)
    }

    /// Creates an empty file for the copy. SQLite accepts it, and it has the right mode from the start.
    fn unused_name(&self, directory: &Path) -> io::Result<PathBuf> {
        let stem = self.path.file_stem().unwrap_or_default().to_string_lossy();
        let extension = self.path.extension().map_or("db".into(), |extension| extension.to_string_lossy());
        let path = |number: u32| directory.join(format!("{stem}.saved-{number}.{extension}"));
        Ok(private::create_numbered_file(path)?.0)
    }
}

/// Path as an SQL value; it need not be UTF-8.
pub(super) fn as_text(path: &Path) -> ToSqlOutput<'_> {
    ToSqlOutput::Borrowed(ValueRef::Text(path.as_os_str().as_encoded_bytes()))
}
