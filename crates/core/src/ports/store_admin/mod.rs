//! The second port of a store: what looks after the store itself, and moves its sessions.
//!
//! [`Store`](super::Store) has what sessions need. This port has what their owner needs: detection and repair of damage, collection of
//! garbage, sizes, SQL, backups, and sessions that move to other stores. Nothing here is needed to run a session.
//!
//! A store that cannot do one of these answers with [`StoreError::Unsupported`], which has a hint. Futures may be dropped at any time: each
//! operation is made of whole steps, so what was dropped or interrupted leaves a sound store, and is completed by running it again.
//!
//! | module | responsibility |
//! |---|---|
//! | `check` | reports of verification and salvage |
//! | `collect` | retention, expiry, and the report of a collection |
//! | `size` | disk usage |
//! | `select` | SQL that reads |
//! | `transfer` | bundles, and sessions that are copied to other stores |
//! | `open_error` | errors of opening and creating stores |

mod check;
mod collect;
mod open_error;
mod select;
mod transfer;

use std::any::Any;
use std::fmt;
use std::future::ready;
use std::path::{Path, PathBuf};

pub use check::{Finding, LostTail, SalvageReport, SalvagedSession, StoreLocation, VerifyReport};
pub use collect::{Expiry, FreedSpace, GcMode, GcReport, ObjectsSize, Retention, SessionSize, StoreSize};
pub use open_error::OpenError;
pub use select::{RowSink, SelectError, SelectLimits, SelectedRows, SqlValue};
pub use transfer::{
    BundleError, BundleReport, ImportChanges, OpenBundle, SessionRole, TransferOutcome, TransferProgress,
    TransferReport, TransferStep, TransferredSession,
};

use super::BoxFuture;
use super::erasure::RemovedSession;
use super::store_error::StoreError;
use crate::id::SessionId;

/// Receiver of the progress of an operation.
pub type Progress<'a, T> = &'a mut (dyn FnMut(T) + Send);

/// Progress of a backup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackupProgress {
    /// Bytes written so far.
    pub written: u64,
    /// Size of the store's content, which is about what has to be written.
    pub total: u64,
}

/// A note that a file or directory with data of a store is being written. Dropping it removes the note only.
#[derive(Debug)]
pub struct UnfinishedNote {
    _note: Box<dyn fmt::Debug + Send + Sync>,
}

impl UnfinishedNote {
    /// Wraps the note of a store, which ends when it is dropped.
    pub fn new(note: impl fmt::Debug + Send + Sync + 'static) -> Self {
        Self { _note: Box::new(note) }
    }
}

/// Administration of a store. The methods that not every store can support have a default, which says so.
pub trait StoreAdmin: Any + Send + Sync {
    /// What the store is called in messages, such as `a store in memory`.
    fn name(&self) -> &'static str;

    /// Returns the error for an operation that this store does not support.
    fn unsupported(&self, operation: &'static str) -> StoreError {
        let hint = "a store in a file supports it: its address is a path";
        StoreError::Unsupported { store: self.name(), operation, hint }
    }

    /// Reads everything and reports damage. Nothing is changed, and other readers and writers continue.
    fn verify(&self) -> BoxFuture<'_, Result<VerifyReport, StoreError>>;

    /// Deletes the snapshot of a session, if there is one. The journal holds the same state.
    fn remove_snapshot(&self, session: SessionId) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Deletes summaries of sessions that do not exist, and changed paths of such records. Returns the number of summaries.
    fn remove_stray_summaries(&self) -> BoxFuture<'_, Result<u64, StoreError>>;

    /// Deletes all objects that retention does not keep and that are not reachable, or only reports them. Fails on a damaged store,
    /// because reachability cannot be determined there.
    fn collect(&self, retention: Retention, mode: GcMode) -> BoxFuture<'_, Result<GcReport, StoreError>>;

    /// Measures the disk usage by session and by kind of object.
    fn size(&self) -> BoxFuture<'_, Result<StoreSize, StoreError>>;

    /// Lists the sessions that a rule lets expire, in the order of their creation. They can be removed together; their sub-agents are
    /// not listed. Sessions that are not indexed stay.
    fn expired(&self, expiry: Expiry) -> BoxFuture<'_, Result<Vec<SessionId>, StoreError>>;

    /// Lists the sessions that were removed and not created again.
    fn removed(&self) -> BoxFuture<'_, Result<Vec<RemovedSession>, StoreError>>;

    /// Executes one SQL statement that reads, over the views of `docs/query.md`. The store is not changed, whatever the statement says.
    fn select<'a>(
        &'a self,
        sql: &'a str,
        parameters: &'a [SqlValue],
        limits: SelectLimits,
        sink: &'a mut (dyn RowSink + Send),
    ) -> BoxFuture<'a, Result<SelectedRows, SelectError>> {
        let _ = (sql, parameters, limits, sink);
        Box::pin(ready(Err(self.unsupported("SQL").into())))
    }

    /// Copies the whole store to a new file, at which nothing may exist, and returns its size. The file is complete and durable on
    /// return, and does not exist before. A store of an older version is copied as it is.
    fn backup<'a>(
        &'a self,
        to: &'a Path,
        progress: Progress<'a, BackupProgress>,
    ) -> BoxFuture<'a, Result<u64, OpenError>> {
        let _ = (to, progress);
        Box::pin(ready(Err(self.unsupported("backups").into())))
    }

    /// Copies the sound parts of a damaged store to a new one, at which nothing may exist. The damaged store is not changed.
    fn salvage<'a>(&'a self, to: &'a Path) -> BoxFuture<'a, Result<SalvageReport, OpenError>> {
        let _ = to;
        Box::pin(ready(Err(self.unsupported("salvage").into())))
    }

    /// Writes a session, with everything that it depends on, to a new file, at which nothing may exist. The file is complete and
    /// durable on return, and does not exist before. A process may hold the session: the bundle has the records of this moment.
    fn export_bundle<'a>(
        &'a self,
        session: SessionId,
        to: &'a Path,
        progress: Progress<'a, TransferProgress>,
    ) -> BoxFuture<'a, Result<BundleReport, BundleError>> {
        let _ = (session, to, progress);
        Box::pin(ready(Err(self.unsupported("bundles").into())))
    }

    /// Imports a bundle, with these changes. What the store has already is not written again, nor changed. Fails with
    /// [`BundleError::Conflict`] if the store has another session of the same id, and with `Held` if a process holds a session that would
    /// be extended or changed.
    fn import_bundle<'a>(
        &'a self,
        bundle: &'a (dyn OpenBundle + 'static),
        changes: &'a ImportChanges,
        progress: Progress<'a, TransferProgress>,
    ) -> BoxFuture<'a, Result<TransferReport, BundleError>> {
        let _ = (bundle, changes, progress);
        Box::pin(ready(Err(self.unsupported("bundles").into())))
    }

    /// Copies a session, with everything that it depends on, to another store, as with a bundle.
    fn copy_session<'a>(
        &'a self,
        session: SessionId,
        to: &'a (dyn StoreAdmin + 'static),
        progress: Progress<'a, TransferProgress>,
    ) -> BoxFuture<'a, Result<TransferReport, BundleError>> {
        let _ = (session, to, progress);
        Box::pin(ready(Err(self.unsupported("copies of sessions").into())))
    }

    /// Notes that a file or directory with data of this store is being written under a temporary name, which has to contain
    /// `.partial-` and a number. If the process is killed, [`StoreAdmin::remove_unfinished`] removes it. Returns `None` if no note can
    /// be made: notes only help afterwards.
    fn note_unfinished<'a>(&'a self, place: &'a Path) -> BoxFuture<'a, Option<UnfinishedNote>> {
        let _ = place;
        Box::pin(ready(None))
    }

    /// Returns the files and directories with data of this store that killed processes have left unfinished.
    fn unfinished(&self) -> BoxFuture<'_, Vec<PathBuf>> {
        Box::pin(ready(Vec::new()))
    }

    /// Removes the files and directories of [`StoreAdmin::unfinished`], and returns those that are gone.
    fn remove_unfinished(&self) -> BoxFuture<'_, Vec<PathBuf>> {
        Box::pin(ready(Vec::new()))
    }
}
