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

mod check;
mod contents;
mod error;
mod file;
mod selection;
mod transfer;

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use backstitch_core::id::SessionId;
use backstitch_core::journal::Position;
use backstitch_core::time::Timestamp;
use rusqlite::Connection;

pub use error::BundleError;
pub use selection::SessionRole;

use contents::{ContentLimits, Contents};
use file::BundleFile;
use selection::Selection;
use transfer::Transfer;

use super::error::Failure;
use super::new_file::NewFile;
use super::writer::transaction;
use super::{SqliteStore, absolute, open};

/// Receiver of the progress of a transfer.
pub(super) type Progress<'a> = &'a mut dyn FnMut(TransferProgress);

/// Progress of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TransferProgress {
    /// The current step.
    pub step: TransferStep,
    /// Number of objects or sessions that are done.
    pub done: u64,
    /// Number of all objects or sessions of the step.
    pub total: u64,
}

/// A step of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransferStep {
    /// Objects are checked.
    Check,
    /// Objects are written.
    Objects,
    /// Sessions are written.
    Sessions,
}

/// Result of moving a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransferReport {
    /// The session that was named.
    pub session: SessionId,
    /// All moved sessions, the named one last.
    pub sessions: Vec<TransferredSession>,
    /// Number of objects that were written.
    pub objects: u64,
}

impl TransferReport {
    /// Outcome of the session that was named.
    pub fn outcome(&self) -> TransferOutcome {
        self.sessions.last().map_or(TransferOutcome::Present, |last| last.outcome)
    }
}

/// Result for one session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransferredSession {
    /// Id of the session, the same in both stores.
    pub session: SessionId,
    /// Reason why it was moved.
    pub role: SessionRole,
    /// Number of moved records.
    pub records: u64,
    /// What happened to it.
    pub outcome: TransferOutcome,
}

/// What happened to a moved session in the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransferOutcome {
    /// It is new there.
    Created,
    /// Its journal there was the beginning of the moved one, and has the rest now.
    Extended {
        /// Position of the first new record.
        from: Position,
    },
    /// All of its records were there already.
    Present,
}

/// Size and content of a written bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BundleReport {
    /// Sessions and objects in the bundle.
    pub content: TransferReport,
    /// Size of the file in bytes.
    pub bytes: u64,
}

/// A bundle whose content was checked completely.
pub struct Bundle {
    file: BundleFile,
    /// A connection inside of a read transaction: what is imported is what was checked.
    connection: Mutex<Connection>,
    selection: Selection,
    contents: Contents,
}

impl Bundle {
    /// Opens a bundle and checks all of it: tables, checksums, journals, objects, references. The file is
    /// not changed.
    pub fn open(path: impl AsRef<Path>, progress: Progress<'_>) -> Result<Self, BundleError> {
        let file = BundleFile::open(&absolute(path.as_ref())?)?;
        let connection = open::read_only(&file.path).map_err(BundleError::from)?.connection;
        connection.execute_batch("BEGIN")?;
        let limits = ContentLimits::of_bundle(file.bytes);
        let mut checked = || {
            check_pages(&connection)?;
            let selection = Selection::of(&connection, file.session)?;
            let contents = Contents::of(&connection, &selection, limits)?;
            check::check(&connection, &selection, &contents, progress)?;
            Ok((selection, contents))
        };
        let (selection, contents) = checked().map_err(BundleError::of_bundle)?;
        Ok(Self { file, connection: Mutex::new(connection), selection, contents })
    }

    /// Session that the bundle was written for.
    pub fn session(&self) -> SessionId {
        self.selection.main
    }

    /// Time at which the bundle was written, as it says.
    pub fn written_at(&self) -> Option<Timestamp> {
        self.file.at
    }

    /// Path at which the bundle can be read as a store. If the bundle has an older version, that is a
    /// temporary copy, which exists as long as this value.
    pub fn path(&self) -> &Path {
        &self.file.path
    }

    /// Number of sessions, records and objects.
    pub fn counts(&self) -> (usize, u64, usize) {
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
        let path: PathBuf = absolute(path.as_ref())?;
        let file = NewFile::with_data_of(&self.path, &path)?;
        let content = self.selected(session, |source, selection, contents| {
            let target = file::create(file.temporary(), session)?;
            let transfer = Transfer { source, selection, contents };
            let mut failure = None;
            let written = transaction(&target, || {
                transfer.write_new(&target, progress).map_err(|error| {
                    failure = Some(error);
                    rusqlite::Error::InvalidQuery.into()
                })
            });
            match failure {
                Some(error) => Err(error),
                None => {
                    let content = written?;
                    target.close().map_err(|(_, error)| error)?;
                    Ok(content)
                }
            }
        })?;
        Ok(BundleReport { content, bytes: file.publish()? })
    }

    /// Imports a bundle. What the store has already is not written again, so an interrupted import can be
    /// repeated. Fails with [`BundleError::Conflict`] if the store has another session of the same id, and
    /// with `Held` if it has a shorter journal of a session that a process holds.
    pub fn import_bundle(
        &self,
        bundle: &Bundle,
        progress: Progress<'_>,
    ) -> Result<TransferReport, BundleError> {
        let source = bundle.connection.lock().unwrap_or_else(PoisonError::into_inner);
        let Bundle { selection, contents, .. } = bundle;
        Transfer { source: &source, selection, contents }.write_to(self, progress)
    }

    /// Copies a session, with everything that it depends on, to another store, as with a bundle.
    pub fn copy_session(
        &self,
        session: SessionId,
        to: &Self,
        progress: Progress<'_>,
    ) -> Result<TransferReport, BundleError> {
        self.selected(session, |source, selection, contents| {
            check::check(source, selection, contents, progress)?;
            Transfer { source, selection, contents }.write_to(to, progress)
        })
    }

    /// Selects everything that is moved with a session, in one snapshot of the store.
    fn selected<T>(
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

/// Runs SQLite's own check of the file.
fn check_pages(connection: &Connection) -> Result<(), BundleError> {
    let found: String = connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))?;
    if found == "ok" { Ok(()) } else { Err(BundleError::invalid(found)) }
}

impl std::fmt::Debug for Bundle {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Bundle").field("session", &self.session()).finish_non_exhaustive()
    }
}
