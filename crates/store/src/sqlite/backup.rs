//! Backups: a copy of the whole store while it is used.
//!
//! The copy is one consistent state of the store: everything that was acknowledged before it began, and no
//! part of a later batch. It is written by SQLite (`VACUUM INTO`) from a read snapshot, so writers in this and
//! other processes continue, and space that deleted data occupied is not copied. Claims keep their fences, and
//! none is held in the copy.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use std::{fs, thread};

use backstitch_core::ports::{BackupProgress, OpenError};
use rusqlite::Connection;

use super::error::Failure;
use super::new_file::NewFile;
use super::open::{self, absolute};
use super::store::SqliteStore;
use super::watch::as_text;

/// Interval at which progress is reported.
const INTERVAL: Duration = Duration::from_millis(200);

impl SqliteStore {
    /// Copies the store to a new file, at which nothing may exist, and returns its size. The file is complete
    /// and durable on return, and does not exist before. `progress` is called now and then, from another
    /// thread. A store of an older version is copied as it is.
    ///
    /// This blocks the thread; other readers and writers continue.
    pub fn backup(
        &self,
        path: impl AsRef<Path>,
        progress: &mut (dyn FnMut(BackupProgress) + Send),
    ) -> Result<u64, OpenError> {
        self.check_file("backups")?;
        let file = NewFile::with_data_of(&self.path, &absolute(path.as_ref())?)?;
        // Not with a connection of this store, which may have an older version.
        let connection = open::any_version(&self.path);
        self.readers.check_in_place()?;
        copy(&connection?, &file, progress)?;
        file.publish()
    }
}

fn copy(
    connection: &Connection,
    file: &NewFile,
    progress: &mut (dyn FnMut(BackupProgress) + Send),
) -> Result<(), Failure> {
    let number = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let pages = number("page_count")? - number("freelist_count")?;
    let total = (pages * number("page_size")?).cast_unsigned();
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            while !is_done.load(Ordering::Acquire) {
                let written = fs::metadata(file.temporary()).map_or(0, |file| file.len());
                progress(BackupProgress { written, total });
                thread::park_timeout(INTERVAL);
            }
        });
        let copied = connection.execute("VACUUM INTO ?1", [as_text(file.temporary())]);
        is_done.store(true, Ordering::Release);
        watcher.thread().unpark();
        copied?;
        Ok(())
    })
}
