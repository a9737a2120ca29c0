//! The second port in memory. What needs a file, SQL or another process is not supported.

use std::collections::{BTreeMap, HashSet};

use backstitch_core::id::SessionId;
use backstitch_core::journal::{Record, RecordBody};
use backstitch_core::object::ObjectKind;
use backstitch_core::ports::{
    BoxFuture, Expiry, FreedSpace, GcMode, GcReport, ObjectsSize, RemovedSession, Retention, SessionQuery,
    SessionSize, StoreAdmin, StoreError, StoreLocation, StoreSize, TimeRange, VerifyReport,
};

use super::erasure::encoded;
use super::{Contents, MemoryStore};
use crate::family::is_open;
use crate::redaction::Contents as _;

impl Contents {
    /// Checks that each object that a record needs is stored or was redacted.
    fn verify(&self) -> VerifyReport {
        let mut report = VerifyReport { objects: self.objects.len() as u64, ..VerifyReport::default() };
        for session in self.created.values() {
            report.sessions += 1;
            let mut replaced = Vec::new();
            for record in self.journals.get(session).into_iter().flatten() {
                report.records += 1;
                if let RecordBody::Redacted(redacted) = &record.body {
                    replaced.extend(redacted.positions.iter().copied());
                }
                for object in record.body.object_refs() {
                    if self.redacted.contains(&object) {
                        report.redacted_objects.insert(object);
                    } else if !self.objects.contains_key(&object) {
                        let place = StoreLocation::Record(*session, record.position);
                        report.add(place, format!("it needs object {object}, which is not stored"));
                    }
                }
            }
            replaced.sort_unstable();
            replaced.dedup();
            if !replaced.is_empty() {
                report.redacted.push((*session, replaced));
            }
        }
        report.removed = self.removed_sessions();
        report
    }

    fn removed_sessions(&self) -> Vec<RemovedSession> {
        let mut removed: Vec<_> = self
            .removed
            .iter()
            .map(|(session, records)| RemovedSession { session: *session, records: *records })
            .collect();
        removed.sort_unstable_by_key(|one| one.session);
        removed
    }

    /// Deletes the objects that nothing names, or only counts them.
    fn collect(&mut self, mode: GcMode) -> Result<GcReport, StoreError> {
        let needed = self.needed_without(&HashSet::new())?;
        let mut freed: BTreeMap<ObjectKind, FreedSpace> = BTreeMap::new();
        let mut report = GcReport::default();
        for (id, object) in &self.objects {
            let bytes = object.bytes().len() as u64;
            if needed.contains(id) {
                report.kept_objects += 1;
                report.kept_bytes += bytes;
                continue;
            }
            let kind = object.kind();
            let one = freed.entry(kind).or_insert(FreedSpace { session: None, kind, objects: 0, bytes: 0 });
            one.objects += 1;
            one.bytes += bytes;
        }
        if mode == GcMode::Now {
            self.objects.retain(|id, _| needed.contains(id));
        }
        report.freed = freed.into_values().collect();
        Ok(report)
    }

    fn size(&self) -> Result<StoreSize, StoreError> {
        let mut size = StoreSize::default();
        for session in self.created.values() {
            let journal = self.journal(*session)?;
            let mut text = 0;
            for record in journal {
                text += encoded(*session, record)?.len() as u64;
            }
            let snapshot = self.snapshots.get(session).map_or(0, |saved| saved.bytes.len() as u64);
            size.sessions.push(SessionSize {
                session: *session,
                records: journal.len() as u64,
                text,
                snapshot,
            });
        }
        let mut kinds: BTreeMap<ObjectKind, ObjectsSize> = BTreeMap::new();
        for object in self.objects.values() {
            let (kind, bytes) = (object.kind(), object.bytes().len() as u64);
            let one = kinds.entry(kind).or_insert(ObjectsSize { kind, objects: 0, content: 0, stored: 0 });
            one.objects += 1;
            one.content += bytes;
            one.stored += bytes;
        }
        size.objects = kinds.into_values().collect();
        Ok(size)
    }

    fn expired(&self, expiry: &Expiry) -> Result<Vec<SessionId>, StoreError> {
        let Some(before) = expiry.before else { return Ok(Vec::new()) };
        let mut wanted = SessionQuery::roots().with_updated(TimeRange { since: None, until: Some(before) });
        wanted.statuses.clone_from(&expiry.statuses);
        let free = self.indexed(&wanted)?.filter(|(_, one)| one.holder.is_none());
        let old = free.map(|(_, one)| one.id()).collect();
        self.origins()?.expirable(old, |session| {
            if self.holder(session).is_some() {
                return Ok(true);
            }
            let records: Vec<Record> =
                self.journal(session)?.iter().map(|record| Record::clone(record)).collect();
            Ok(is_open(&records))
        })
    }
}

impl StoreAdmin for MemoryStore {
    fn name(&self) -> &'static str {
        "a store in memory"
    }

    fn verify(&self) -> BoxFuture<'_, Result<VerifyReport, StoreError>> {
        Box::pin(async move { Ok(self.contents().verify()) })
    }

    fn remove_snapshot(&self, session: SessionId) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            let mut contents = self.contents();
            contents.journal(session)?;
            contents.snapshots.remove(&session);
            Ok(())
        })
    }

    fn remove_stray_summaries(&self) -> BoxFuture<'_, Result<u64, StoreError>> {
        // Summaries are removed with their sessions, so there are none.
        Box::pin(async move { Ok(0) })
    }

    fn collect(&self, retention: Retention, mode: GcMode) -> BoxFuture<'_, Result<GcReport, StoreError>> {
        Box::pin(async move {
            if retention != Retention::keep_all() {
                return Err(self.unsupported("rules of retention"));
            }
            self.contents().collect(mode)
        })
    }

    fn size(&self) -> BoxFuture<'_, Result<StoreSize, StoreError>> {
        Box::pin(async move { self.contents().size() })
    }

    fn expired(&self, expiry: Expiry) -> BoxFuture<'_, Result<Vec<SessionId>, StoreError>> {
        Box::pin(async move { self.contents().expired(&expiry) })
    }

    fn removed(&self) -> BoxFuture<'_, Result<Vec<RemovedSession>, StoreError>> {
        Box::pin(async move { Ok(self.contents().removed_sessions()) })
    }
}
