//! The second port. Each operation blocks the thread that polls it until it is done, as in SQLite, so a future that is dropped has either not begun or ended.

use std::any::Any;
use std::collections::HashSet;
use std::path::Path;

use backstitch_core::id::SessionId;
use backstitch_core::ports::{
    BackupProgress, BoxFuture, BundleError, BundleReport, Expiry, GcMode, GcReport, ImportChanges,
    OpenBundle, OpenError, Progress, RemovedSession, Retention, RowSink, SalvageReport, SelectError,
    SelectLimits, SelectedRows, SqlValue, StoreAdmin, StoreError, StoreSize, TransferProgress,
    TransferReport, VerifyReport,
};

use super::gc::{Collection, collect};
use super::records::existing;
use super::server::parameters;
use super::store::PostgresStore;
use super::transfer::Import;
use super::{index, select, size, staging, verify};
use crate::sqlite::Bundle;

impl StoreAdmin for PostgresStore {
    fn name(&self) -> &'static str {
        "a store in PostgreSQL"
    }

    fn verify(&self) -> BoxFuture<'_, Result<VerifyReport, StoreError>> {
        Box::pin(async move { self.in_thread(|link| verify::verify(link, self.shared())) })
    }

    fn remove_snapshot(&self, session: SessionId) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            self.shared().check_writable()?;
            self.in_thread(|link| {
                let (number, _) = existing(link, session)?;
                link.query("DELETE FROM {schema}.snapshots WHERE session = $1", parameters![number => INT8])?;
                Ok(())
            })
        })
    }

    fn remove_stray_summaries(&self) -> BoxFuture<'_, Result<u64, StoreError>> {
        Box::pin(async move {
            self.shared().check_writable()?;
            Ok(self.in_thread(index::remove_strays)?)
        })
    }

    fn collect(&self, retention: Retention, mode: GcMode) -> BoxFuture<'_, Result<GcReport, StoreError>> {
        Box::pin(async move {
            if mode == GcMode::Now {
                self.shared().check_writable()?;
            }
            let age = self.shared().server.options.garbage_age;
            let collection = Collection { retention, mode, without: &HashSet::new(), age };
            self.in_thread(|link| collect(link, &collection))
        })
    }

    fn size(&self) -> BoxFuture<'_, Result<StoreSize, StoreError>> {
        Box::pin(async move { self.in_thread(size::measure) })
    }

    fn expired(&self, expiry: Expiry) -> BoxFuture<'_, Result<Vec<SessionId>, StoreError>> {
        Box::pin(self.expired_sessions(expiry))
    }

    fn removed(&self) -> BoxFuture<'_, Result<Vec<RemovedSession>, StoreError>> {
        Box::pin(async move { Ok(self.in_thread(verify::removed)?) })
    }

    fn select<'a>(
        &'a self,
        sql: &'a str,
        parameters: &'a [SqlValue],
        limits: SelectLimits,
        sink: &'a mut (dyn RowSink + Send),
    ) -> BoxFuture<'a, Result<SelectedRows, SelectError>> {
        Box::pin(async move { self.in_thread(|link| select::select(link, sql, parameters, limits, sink)) })
    }

    fn backup<'a>(
        &'a self,
        _: &'a Path,
        _: Progress<'a, BackupProgress>,
    ) -> BoxFuture<'a, Result<u64, OpenError>> {
        let hint =
            "the tools of the server back it up: `pg_dump` with the schema of the store, or `pg_basebackup`";
        let error = StoreError::Unsupported { store: self.name(), operation: "backups", hint };
        Box::pin(std::future::ready(Err(error.into())))
    }

    fn salvage<'a>(&'a self, to: &'a Path) -> BoxFuture<'a, Result<SalvageReport, OpenError>> {
        Box::pin(async move { self.in_thread(|link| staging::salvage(link, &self.shared().packer, to)) })
    }

    fn export_bundle<'a>(
        &'a self,
        session: SessionId,
        to: &'a Path,
        progress: Progress<'a, TransferProgress>,
    ) -> BoxFuture<'a, Result<BundleReport, BundleError>> {
        Box::pin(async move {
            self.in_thread(|link| {
                staging::stage(link, &self.shared().packer, session)?.export(session, to, progress)
            })
        })
    }

    fn import_bundle<'a>(
        &'a self,
        bundle: &'a (dyn OpenBundle + 'static),
        changes: &'a ImportChanges,
        progress: Progress<'a, TransferProgress>,
    ) -> BoxFuture<'a, Result<TransferReport, BundleError>> {
        Box::pin(async move {
            let any: &dyn Any = bundle;
            let Some(bundle) = any.downcast_ref::<Bundle>() else {
                return Err(self.unsupported("bundles of another form").into());
            };
            self.in_thread(|link| {
                let bundle = &bundle.moved();
                Import { link, shared: self.shared(), bundle, changes }.run(progress)
            })
        })
    }

    fn copy_session<'a>(
        &'a self,
        session: SessionId,
        to: &'a (dyn StoreAdmin + 'static),
        progress: Progress<'a, TransferProgress>,
    ) -> BoxFuture<'a, Result<TransferReport, BundleError>> {
        Box::pin(async move {
            let bundle = self.in_thread(|link| {
                staging::stage(link, &self.shared().packer, session)?.bundle(session, progress)
            })?;
            to.import_bundle(&bundle, &ImportChanges::default(), progress).await
        })
    }
}
