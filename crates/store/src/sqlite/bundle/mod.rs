//! Moving sessions between stores.
//!
//! A session is moved with everything that it depends on: the sessions that it was forked from up to the
//! fork, its sub-agents, pending inbox items, and all objects that any of them names. Claims, locks, snapshots
//! and summaries stay behind. A session is either copied from store to store, or written to a bundle, a file
//! that another machine imports.
//!
//! | module | responsibility |
//! |---|---|
//! | `selection` | the sessions that are moved together, and the objects that they name |
//! | `contents` | all objects below these, in the order of writing |
//! | `check` | checks before anything is written |
//! | `transfer` | comparison with the target, and writing |
//! | `file` | bundle files |
//! | `moved` | the content of a bundle, for stores of other kinds |

mod check;
mod contents;
mod error;
mod file;
#[cfg(feature = "postgres")]
mod moved;
mod selection;
mod transfer;

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use backstitch_core::id::SessionId;
use backstitch_core::journal::{LargeRecord as _, Record, RecordBody};
use backstitch_core::object::ObjectContent;
use backstitch_core::ports::{
    BundleError, BundleReport, ImportChanges, OpenBundle, TransferProgress, TransferReport, hydrate,
};
use backstitch_core::time::Timestamp;
use backstitch_core::view::JournalView;
use rusqlite::Connection;

use contents::{ContentLimits, Contents};
use error::{invalid, of_bundle};
use file::{BundleFile, TemporaryCopy};
use selection::Selection;
use transfer::Transfer;

use super::error::Failure;
use super::new_file::NewFile;
use super::objects;
use super::open::{self, absolute};
use super::store::SqliteStore;
use super::writer::transaction;
#[cfg(feature = "postgres")]
pub(crate) use moved::{MovedBundle, MovedSession};

/// Receiver of the progress of a transfer.
pub(crate) type Progress<'a> = &'a mut dyn FnMut(TransferProgress);

/// A bundle whose content was checked completely.
pub struct Bundle {
    file: BundleFile,
    /// A connection inside of a read transaction: what is imported is what was checked.
    connection: Mutex<Connection>,
    selection: Selection,
    contents: Contents,
    /// Deletes a file that only this value uses.
    _file: Option<TemporaryCopy>,
}

impl Bundle {
    /// Writes a session to a temporary bundle, for a store of another kind that imports it. What comes from a store of this program has no limits.
    pub(super) fn temporary(
        source: &Connection,
        session: SessionId,
        progress: Progress<'_>,
    ) -> Result<Self, BundleError> {
        let copy = TemporaryCopy::new()?;
        let selection = Selection::of(source, session)?;
        let contents = Contents::of(source, &selection, ContentLimits::NONE)?;
        write_file(copy.path(), source, &selection, &contents, progress)?;
        let bundle = Self::open_within(copy.path(), |_| ContentLimits::NONE, progress)?;
        Ok(Self { _file: Some(copy), ..bundle })
    }

    /// Opens a bundle and checks all of it: tables, checksums, journals, objects, references. The file is
    /// not changed.
    pub fn open(path: impl AsRef<Path>, progress: Progress<'_>) -> Result<Self, BundleError> {
        Self::open_within(path.as_ref(), ContentLimits::of_bundle, progress)
    }

    fn open_within(
        path: &Path,
        limits: fn(u64) -> ContentLimits,
        progress: Progress<'_>,
    ) -> Result<Self, BundleError> {
        let file = BundleFile::open(&absolute(path)?)?;
        let connection = open::read_only(&file.path)?.connection;
        connection.execute_batch("BEGIN").map_err(Failure::from)?;
        let limits = limits(file.bytes);
        let mut checked = || {
            check_pages(&connection)?;
            let selection = Selection::of(&connection, file.session)?;
            let contents = Contents::of(&connection, &selection, limits)?;
            check::check(&connection, &selection, &contents, progress)?;
            Ok((selection, contents))
        };
        let (selection, contents) = checked().map_err(of_bundle)?;
        Ok(Self { file, connection: Mutex::new(connection), selection, contents, _file: None })
    }

    /// Passes each session with its view and its records, as an import writes them. Notes have their large data, as far as that can
    /// be read.
    pub fn each_session<E: From<BundleError>>(
        &self,
        mut each: impl FnMut(&JournalView, &[Record]) -> Result<(), E>,
    ) -> Result<(), E> {
        let connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        check::fold_journals(&connection, &self.selection, |_, view, mut records| {
            for record in &mut records {
                if let RecordBody::Note(note) = &mut record.body
                    && let Some(id) = note.large_object().map(|reference| reference.object)
                    && let Ok(found) = objects::get(&connection, id)
                {
                    let _ = hydrate(note, found.as_ref().map(ObjectContent::from));
                }
            }
            each(view, &records)
        })
    }
}

impl OpenBundle for Bundle {
    fn session(&self) -> SessionId {
        self.selection.main
    }

    fn written_at(&self) -> Option<Timestamp> {
        self.file.at
    }

    fn path(&self) -> &Path {
        &self.file.path
    }

    fn counts(&self) -> (usize, u64, usize) {
        (self.selection.sessions.len(), self.selection.records(), self.contents.objects.len())
    }
}

impl SqliteStore {
    /// Writes a session, with everything that it depends on, to a new file, at which nothing may exist. The
    /// file is complete and durable on return, and does not exist before.
    ///
    /// The session may be driven by another process: the bundle has the records of the moment at which this
    /// is called.
    pub fn export_bundle(
        &self,
        session: SessionId,
        path: impl AsRef<Path>,
        progress: Progress<'_>,
    ) -> Result<BundleReport, BundleError> {
        self.check_file("bundles")?;
        let path: PathBuf = absolute(path.as_ref())?;
        let file = NewFile::with_data_of(&self.path, &path)?;
        let content = self.with_selection(session, |source, selection, contents| {
            write_file(file.temporary(), source, selection, contents, progress)
        })?;
        Ok(BundleReport { content, bytes: file.publish()? })
    }

    /// Imports a bundle, with these changes. What the store has already is not written again, nor changed, so
    /// an interrupted import can be repeated. Fails with [`BundleError::Conflict`] if the store has another
    /// session of the same id, and with `Held` if a process holds a session that would be extended or changed.
    pub fn import_bundle(
        &self,
        bundle: &Bundle,
        changes: &ImportChanges,
        progress: Progress<'_>,
    ) -> Result<TransferReport, BundleError> {
        self.check_file("bundles")?;
        let source = bundle.connection.lock().unwrap_or_else(PoisonError::into_inner);
        let Bundle { selection, contents, .. } = bundle;
        Transfer { source: &source, selection, contents, changes }.write_to(self, progress)
    }

    /// Copies a session, with everything that it depends on, to another store, as with a bundle.
    pub fn copy_session(
        &self,
        session: SessionId,
        to: &Self,
        progress: Progress<'_>,
    ) -> Result<TransferReport, BundleError> {
        // The selection holds the only connection of a store in memory, which a write to that store would wait for.
        [self, to].into_iter().try_for_each(|store| store.check_file("copies of sessions"))?;
        self.with_selection(session, |source, selection, contents| {
            check::check(source, selection, contents, progress)?;
            let changes = &ImportChanges::default();
            Transfer { source, selection, contents, changes }.write_to(to, progress)
        })
    }

    /// Writes a session to a temporary bundle.
    pub(super) fn temporary_bundle(
        &self,
        session: SessionId,
        progress: Progress<'_>,
    ) -> Result<Bundle, BundleError> {
        self.readers.at_once(|source| Ok::<_, Failure>(Bundle::temporary(source, session, progress)))?
    }

    /// Selects everything that is moved with a session, in one snapshot of the store.
    fn with_selection<T>(
        &self,
        session: SessionId,
        run: impl FnOnce(&Connection, &Selection, &Contents) -> Result<T, BundleError>,
    ) -> Result<T, BundleError> {
        self.readers.at_once(|source| {
            let run = || {
                let selection = Selection::of(source, session)?;
                let contents = Contents::of(source, &selection, ContentLimits::NONE)?;
                run(source, &selection, &contents)
            };
            Ok::<_, Failure>(run())
        })?
    }
}

/// Writes a session of a database that no store has open, with everything that it depends on, to a new file.
#[cfg(feature = "postgres")]
pub(super) fn export_from(
    source: &Connection,
    session: SessionId,
    path: &Path,
    progress: Progress<'_>,
) -> Result<BundleReport, BundleError> {
    let file = NewFile::beside(&absolute(path)?)?;
    let selection = Selection::of(source, session)?;
    let contents = Contents::of(source, &selection, ContentLimits::NONE)?;
    let content = write_file(file.temporary(), source, &selection, &contents, progress)?;
    Ok(BundleReport { content, bytes: file.publish()? })
}

/// Writes a selection to an empty file.
fn write_file(
    path: &Path,
    source: &Connection,
    selection: &Selection,
    contents: &Contents,
    progress: Progress<'_>,
) -> Result<TransferReport, BundleError> {
    let target = file::create(path, selection.main)?;
    let changes = &ImportChanges::default();
    let transfer = Transfer { source, selection, contents, changes };
    let content = transaction(&target, || transfer.write_new(&target, progress))?;
    target.close().map_err(|(_, error)| Failure::from(error))?;
    Ok(content)
}

/// Runs SQLite's own check of the file.
fn check_pages(connection: &Connection) -> Result<(), BundleError> {
    let found = connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get::<_, String>(0));
    let found = found.map_err(Failure::from)?;
    if found == "ok" { Ok(()) } else { Err(invalid(found)) }
}

impl std::fmt::Debug for Bundle {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Bundle").field("session", &self.session()).finish_non_exhaustive()
    }
}
