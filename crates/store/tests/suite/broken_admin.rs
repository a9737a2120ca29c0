//! The suite for the administration of stores detects mistakes.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use backstitch_core::id::SessionId;
use backstitch_core::ports::{
    BoxFuture, Expiry, GcMode, GcReport, RemovedSession, Retention, RowSink, SelectError, SelectLimits,
    SelectedRows, SqlValue, Store, StoreAdmin, StoreError, StoreSize, VerifyReport,
};
use backstitch_store::MemoryStore;

use crate::conformance::HasStore;
use crate::conformance::admin::{ADMIN_PROPERTIES, HasAdmin};

#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    /// Only the first session is verified.
    VerifiesLittle,
    /// A dry run deletes.
    CollectsInDryRuns,
    /// Garbage is reported and not deleted.
    CollectsNothing,
    /// Sessions of all statuses expire.
    ForgetsStatuses,
    /// Removed sessions are not listed.
    ForgetsRemoved,
    /// Snapshots stay.
    KeepsSnapshots,
    /// Sizes are those of an empty store.
    MeasuresNothing,
    /// A refusal of SQL has no hint.
    HasNoHint,
}

/// The administration of a store in memory, with a fault.
struct Administration {
    fault: Fault,
    store: Arc<MemoryStore>,
    inner: Arc<dyn StoreAdmin>,
}

impl StoreAdmin for Administration {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn verify(&self) -> BoxFuture<'_, Result<VerifyReport, StoreError>> {
        Box::pin(async move {
            let mut report = self.inner.verify().await?;
            if self.fault == Fault::VerifiesLittle {
                report.sessions = report.sessions.min(1);
            }
            Ok(report)
        })
    }

    fn remove_snapshot(&self, session: SessionId) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            match self.fault {
                Fault::KeepsSnapshots => self.store.head(session).await.map(|_| ()),
                _ => self.inner.remove_snapshot(session).await,
            }
        })
    }

    fn remove_stray_summaries(&self) -> BoxFuture<'_, Result<u64, StoreError>> {
        self.inner.remove_stray_summaries()
    }

    fn collect(&self, retention: Retention, mode: GcMode) -> BoxFuture<'_, Result<GcReport, StoreError>> {
        self.inner.collect(
            retention,
            match self.fault {
                Fault::CollectsInDryRuns => GcMode::Now,
                Fault::CollectsNothing => GcMode::DryRun,
                _ => mode,
            },
        )
    }

    fn size(&self) -> BoxFuture<'_, Result<StoreSize, StoreError>> {
        Box::pin(async move {
            let size = self.inner.size().await?;
            Ok(if self.fault == Fault::MeasuresNothing { StoreSize::default() } else { size })
        })
    }

    fn expired(&self, expiry: Expiry) -> BoxFuture<'_, Result<Vec<SessionId>, StoreError>> {
        match self.fault {
            Fault::ForgetsStatuses => self.inner.expired(expiry.with_statuses([])),
            _ => self.inner.expired(expiry),
        }
    }

    fn removed(&self) -> BoxFuture<'_, Result<Vec<RemovedSession>, StoreError>> {
        Box::pin(async move {
            let removed = self.inner.removed().await?;
            Ok(if self.fault == Fault::ForgetsRemoved { Vec::new() } else { removed })
        })
    }

    fn select<'a>(
        &'a self,
        sql: &'a str,
        parameters: &'a [SqlValue],
        limits: SelectLimits,
        sink: &'a mut (dyn RowSink + Send),
    ) -> BoxFuture<'a, Result<SelectedRows, SelectError>> {
        if self.fault == Fault::HasNoHint {
            let error = StoreError::Unsupported { store: self.name(), operation: "SQL", hint: "" };
            return Box::pin(async move { Err(error.into()) });
        }
        self.inner.select(sql, parameters, limits, sink)
    }
}

struct Broken {
    store: Arc<MemoryStore>,
    admin: Administration,
}

impl Broken {
    fn new(fault: Fault) -> Self {
        let store = Arc::new(MemoryStore::new());
        Self { store: store.clone(), admin: Administration { fault, store: store.clone(), inner: store } }
    }
}

impl HasStore for Broken {
    fn store(&self) -> &dyn Store {
        &*self.store
    }
}

impl HasAdmin for Broken {
    fn admin(&self) -> &(dyn StoreAdmin + 'static) {
        &self.admin
    }
}

#[test]
fn every_fault_is_found() {
    for (fault, property) in [
        (Fault::VerifiesLittle, "verification_counts_what_is_stored"),
        (Fault::CollectsInDryRuns, "a_collection_deletes_what_no_record_names"),
        (Fault::CollectsNothing, "a_collection_deletes_what_no_record_names"),
        (Fault::ForgetsStatuses, "age_and_status_decide_about_expiry"),
        (Fault::ForgetsRemoved, "removed_sessions_are_listed_until_they_are_created_again"),
        (Fault::KeepsSnapshots, "a_deleted_snapshot_leaves_the_journal"),
        (Fault::MeasuresNothing, "sizes_are_those_of_the_sessions"),
        (Fault::HasNoHint, "what_is_not_supported_has_a_code_and_a_hint"),
    ] {
        let (_, check) = ADMIN_PROPERTIES.iter().find(|(name, _)| *name == property).unwrap();
        let (one, two) = (Broken::new(fault), Broken::new(fault));
        let found = catch_unwind(AssertUnwindSafe(|| check(&one, &two)));
        assert!(found.is_err(), "{fault:?} is not found by {property}");
    }
}
