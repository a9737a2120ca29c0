//! The second port: each operation is a method of the store, and blocks the thread that polls it until it is done.
//!
//! So a future that is dropped has either not begun or ended. What kills the process in between leaves whole transactions and temporary
//! files, and the same operation completes the first and removes the second.

use std::any::Any;
use std::path::{Path, PathBuf};

use backstitch_core::id::SessionId;
use backstitch_core::ports::{
    BackupProgress, BoxFuture, BundleError, BundleReport, Expiry, GcMode, GcReport, ImportChanges,
    OpenBundle, OpenError, Progress, RemovedSession, Retention, RowSink, SalvageReport, SelectError,
    SelectLimits, SelectedRows, SqlValue, StoreAdmin, StoreError, StoreSize, TransferProgress,
    TransferReport, UnfinishedNote, VerifyReport,
};

use super::bundle::Bundle;
use super::store::SqliteStore;

impl SqliteStore {
    /// Fails if the store is in memory, which does not support an operation.
    pub(super) fn check_file(&self, operation: &'static str) -> Result<(), StoreError> {
        if self.is_in_memory() { Err(self.unsupported(operation)) } else { Ok(()) }
    }
}

impl StoreAdmin for SqliteStore {
    fn name(&self) -> &'static str {
        if self.is_in_memory() { "a store in memory" } else { "a store in a file" }
    }

    fn verify(&self) -> BoxFuture<'_, Result<VerifyReport, StoreError>> {
        Box::pin(async move { Self::verify(self) })
    }

    fn remove_snapshot(&self, session: SessionId) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move { Self::remove_snapshot(self, session) })
    }

    fn remove_stray_summaries(&self) -> BoxFuture<'_, Result<u64, StoreError>> {
        Box::pin(async move { Self::remove_stray_summaries(self) })
    }

    fn collect(&self, retention: Retention, mode: GcMode) -> BoxFuture<'_, Result<GcReport, StoreError>> {
        Box::pin(async move {
            if retention != Retention::keep_all() {
                self.check_file("rules of retention")?;
            }
            self.gc(retention, mode)
        })
    }

    fn size(&self) -> BoxFuture<'_, Result<StoreSize, StoreError>> {
        Box::pin(async move { Self::size(self) })
    }

    fn expired(&self, expiry: Expiry) -> BoxFuture<'_, Result<Vec<SessionId>, StoreError>> {
        Box::pin(async move { Self::expired(self, &expiry) })
    }

    fn removed(&self) -> BoxFuture<'_, Result<Vec<RemovedSession>, StoreError>> {
        Box::pin(async move { Self::removed(self) })
    }

    fn select<'a>(
        &'a self,
        sql: &'a str,
        parameters: &'a [SqlValue],
        limits: SelectLimits,
        sink: &'a mut (dyn RowSink + Send),
    ) -> BoxFuture<'a, Result<SelectedRows, SelectError>> {
        Box::pin(async move { Self::select(self, sql, parameters, limits, sink) })
    }

    fn backup<'a>(
        &'a self,
        to: &'a Path,
        progress: Progress<'a, BackupProgress>,
    ) -> BoxFuture<'a, Result<u64, OpenError>> {
        Box::pin(async move { Self::backup(self, to, progress) })
    }

    fn salvage<'a>(&'a self, to: &'a Path) -> BoxFuture<'a, Result<SalvageReport, OpenError>> {
        Box::pin(async move {
            self.check_file("salvage")?;
            Self::salvage(self.path(), to)
        })
    }

    fn export_bundle<'a>(
        &'a self,
        session: SessionId,
        to: &'a Path,
        progress: Progress<'a, TransferProgress>,
    ) -> BoxFuture<'a, Result<BundleReport, BundleError>> {
        Box::pin(async move { Self::export_bundle(self, session, to, progress) })
    }

    fn import_bundle<'a>(
        &'a self,
        bundle: &'a (dyn OpenBundle + 'static),
        changes: &'a ImportChanges,
        progress: Progress<'a, TransferProgress>,
    ) -> BoxFuture<'a, Result<TransferReport, BundleError>> {
        Box::pin(async move {
            let bundle: &dyn Any = bundle;
            match bundle.downcast_ref::<Bundle>() {
                Some(bundle) => Self::import_bundle(self, bundle, changes, progress),
                None => Err(self.unsupported("bundles of another form").into()),
            }
        })
    }

    fn copy_session<'a>(
        &'a self,
        session: SessionId,
        to: &'a (dyn StoreAdmin + 'static),
        progress: Progress<'a, TransferProgress>,
    ) -> BoxFuture<'a, Result<TransferReport, BundleError>> {
        Box::pin(async move {
            self.check_file("copies of sessions")?;
            let target: &dyn Any = to;
            match target.downcast_ref::<Self>() {
                Some(target) if target.is_in_memory() => {
                    Err(to.unsupported("sessions of other stores").into())
                }
                Some(target) => Self::copy_session(self, session, target, progress),
                // Every store that can read a bundle can have the session.
                None => {
                    let bundle = self.temporary_bundle(session, progress)?;
                    to.import_bundle(&bundle, &ImportChanges::default(), progress).await
                }
            }
        })
    }

    fn note_unfinished<'a>(&'a self, place: &'a Path) -> BoxFuture<'a, Option<UnfinishedNote>> {
        Box::pin(async move { Self::note_unfinished(self, place) })
    }

    fn unfinished(&self) -> BoxFuture<'_, Vec<PathBuf>> {
        Box::pin(async move { if self.is_in_memory() { Vec::new() } else { Self::unfinished(self) } })
    }

    fn remove_unfinished(&self) -> BoxFuture<'_, Vec<PathBuf>> {
        Box::pin(async move { if self.is_in_memory() { Vec::new() } else { Self::remove_unfinished(self) } })
    }
}
