//! Redaction and removal in memory. Each is one critical section, so it is never interrupted.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use backstitch_core::id::SessionId;
use backstitch_core::journal::{
    ObjectRedacted, Origin, Point, Position, Record, RecordBody, RecordsRedacted,
};
use backstitch_core::object::{Object, ObjectId, ObjectKind};
use backstitch_core::ports::{
    Erasure, ErasureMode, RedactedSession, Redaction, RedactionReport, Removal, RemovalReport,
    RemovedSession, StoreError,
};
use backstitch_core::redaction::{
    ObjectCopies, ObjectCopy, SensitiveValue, redact_content, redact_inbox_data, redact_record,
};

use super::{Contents, head_of};
use crate::family::{Origins, is_open};
use crate::redaction::{self, Candidates, Plan};
use crate::references::{References, below, named_in_manifest};

impl Contents {
    pub(super) fn redact(&mut self, redaction: &Redaction) -> Result<RedactionReport, StoreError> {
        let plan = Plan::new(self, redaction.session, &redaction.value)?;
        let mut report = RedactionReport {
            files: plan.paths.into_iter().collect(),
            file_names: plan.file_names.into_iter().collect(),
            shared_with: plan.shared_with,
            elsewhere: plan.elsewhere,
            ..RedactionReport::default()
        };
        let is_real = redaction.mode == ErasureMode::Now;
        if is_real {
            self.check_free(&plan.family)?;
        } else {
            report.erasure = Erasure::NotStarted;
        }

        let mut copies = ObjectCopies::new();
        let mut brought = Vec::new();
        for id in &plan.contents {
            let Some(original) = self.objects.get(id) else { continue };
            let copy = Object::new(original.kind(), redact_content(original.bytes(), &redaction.value));
            copies.insert(*id, ObjectCopy::from(&copy));
            report.objects.push(ObjectRedacted { object: *id, replacement: Some(copy.id()) });
            brought.push(copy);
        }
        let files = plan.files.iter();
        report.objects.extend(files.map(|id| ObjectRedacted { object: *id, replacement: None }));

        let mut changed = Vec::new();
        for session in &plan.family {
            let mut one = RedactedSession::new(*session);
            let mut records = HashMap::new();
            for record in self.journal(*session)? {
                let (position, text) = (record.position, encoded(*session, record)?);
                let Some(redacted) = redact_record(position, &text, &redaction.value, &copies) else {
                    continue;
                };
                if redacted.kept > 0 {
                    report.kept.push(Point { session: *session, position });
                }
                if redacted.replacements > 0 {
                    let broken = |source| StoreError::BrokenRecord { session: *session, source };
                    records.insert(position, Record::decode(position, &redacted.text).map_err(broken)?);
                    one.positions.push(position);
                    one.replacements += redacted.replacements;
                }
            }
            let items = self.inbox.iter().filter(|(_, (whose, _))| whose == session);
            let items: HashMap<_, _> = items
                .filter_map(|(id, (_, item))| {
                    let redacted = redact_inbox_data(&item.data.to_string(), &redaction.value)?;
                    Some((*id, serde_json::from_str(&redacted.text).ok()?))
                })
                .collect();
            one.inbox = items.len() as u64;
            changed.push((one.clone(), records, items));
            report.add(one);
        }
        if !is_real {
            return Ok(report);
        }

        for copy in brought {
            self.objects.insert(copy.id(), copy);
        }
        for ObjectRedacted { object, .. } in &report.objects {
            self.objects.remove(object);
            self.redacted.insert(*object);
        }
        for (one, mut records, mut items) in changed {
            self.snapshots.remove(&one.session);
            self.summaries.remove(&one.session);
            let objects = match one.session == redaction.session {
                true => report.objects.clone(),
                false => Vec::new(),
            };
            let redacted = RecordsRedacted {
                positions: one.positions,
                replacements: one.replacements,
                objects,
                ..RecordsRedacted::default()
            };
            for (id, (_, item)) in &mut self.inbox {
                item.data = items.remove(id).unwrap_or_else(|| std::mem::take(&mut item.data));
            }
            let Some(journal) = self.journals.get_mut(&one.session) else { continue };
            for record in journal.iter_mut() {
                if let Some(new) = records.remove(&record.position) {
                    *record = Arc::new(new);
                }
            }
            if redacted != RecordsRedacted::default() {
                let head = head_of(journal);
                journal.push(Arc::new(Record::new(head, redaction.at, RecordBody::from(redacted))));
            }
        }
        Ok(report)
    }

    pub(super) fn remove(&mut self, removal: &Removal) -> Result<RemovalReport, StoreError> {
        for session in &removal.sessions {
            if !self.removed.contains_key(session) {
                self.journal(*session)?;
            }
        }
        let open = |session| {
            let records: Vec<Record> =
                self.journal(session)?.iter().map(|record| Record::clone(record)).collect();
            Ok(is_open(&records))
        };
        let removed =
            redaction::Contents::origins(self)?.removed_with(&removal.sessions, removal.forks, open)?;
        let mut report = RemovalReport::default();
        for session in &removed {
            let records = self.journal(*session)?.len() as u64;
            report.sessions.push(RemovedSession { session: *session, records });
        }
        let kept = self.needed_without(&removed.iter().copied().collect())?;
        let unused: Vec<ObjectId> = self.objects.keys().copied().filter(|id| !kept.contains(id)).collect();
        report.objects = unused.len() as u64;
        report.bytes = unused.iter().map(|id| self.objects[id].bytes().len() as u64).sum();
        if removal.mode == ErasureMode::DryRun {
            report.erasure = Erasure::NotStarted;
            return Ok(report);
        }
        self.check_free(&removed)?;
        for RemovedSession { session, records } in report.sessions.iter().cloned() {
            self.journals.remove(&session);
            self.snapshots.remove(&session);
            self.summaries.remove(&session);
            self.created.retain(|_, one| *one != session);
            self.inbox.retain(|_, (whose, _)| *whose != session);
            self.removed.insert(session, records);
        }
        for id in unused {
            self.objects.remove(&id);
        }
        self.redacted.retain(|id| kept.contains(id));
        Ok(report)
    }

    /// Fails with `Held` if one of the sessions is held.
    fn check_free(&self, sessions: &[SessionId]) -> Result<(), StoreError> {
        for session in sessions {
            if let Some(owner) = self.holder(*session) {
                return Err(StoreError::Held { session: *session, owner, process: None });
            }
        }
        Ok(())
    }

    /// Ids of all objects that are named by sessions other than these, whether they are stored or not.
    pub(super) fn needed_without(
        &self,
        without: &HashSet<SessionId>,
    ) -> Result<HashSet<ObjectId>, StoreError> {
        let mut open: Vec<(ObjectId, bool)> = Vec::new();
        for session in self.created.values().filter(|session| !without.contains(session)) {
            redaction::Contents::texts(self, *session, &mut |text| {
                let named = References::in_text(text);
                open.extend(named.objects.into_iter().map(|id| (id, false)));
                open.extend(named.roots.iter().flat_map(|root| [(root.tree, false), (root.manifest, true)]));
                Ok(())
            })?;
        }
        let mut seen = HashSet::new();
        while let Some((id, is_manifest)) = open.pop() {
            // A blob may be a file and a manifest.
            if !seen.insert(id) && !is_manifest {
                continue;
            }
            let Some(object) = self.objects.get(&id) else { continue };
            let named = match is_manifest {
                true => named_in_manifest(object.bytes()).unwrap_or_default(),
                false => below(object)?,
            };
            open.extend(named.into_iter().map(|id| (id, false)));
        }
        Ok(seen)
    }
}

pub(super) fn encoded(session: SessionId, record: &Record) -> Result<String, StoreError> {
    let unstorable = |source| StoreError::Unstorable { session, position: record.position, source };
    record.encode().map_err(unstorable)
}

impl redaction::Contents for Contents {
    fn origins(&self) -> Result<Origins, StoreError> {
        let origin = |session: &SessionId| match self.journals.get(session)?.first().map(|first| &first.body)
        {
            Some(RecordBody::SessionCreated(created)) => Some((*session, created.origin.clone())),
            _ => Some((*session, Origin::Root)),
        };
        Ok(Origins(self.created.values().filter_map(origin).collect()))
    }

    fn texts(
        &self,
        session: SessionId,
        each: &mut dyn FnMut(&str) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        for (_, item) in self.inbox.values().filter(|(whose, _)| *whose == session) {
            each(&item.data.to_string())?;
        }
        for record in self.read(session, Position::START, usize::MAX)? {
            each(&encoded(session, &record)?)?;
        }
        Ok(())
    }

    fn candidates(&self, value: &SensitiveValue) -> Result<Candidates, StoreError> {
        let holding = self.objects.values().filter(|object| value.is_in(object.bytes()));
        Ok(Candidates::new(holding.map(|object| (object.id(), object.kind())).collect()))
    }

    fn kind(&self, id: ObjectId) -> Result<Option<ObjectKind>, StoreError> {
        Ok(self.objects.get(&id).map(Object::kind))
    }

    fn object(&self, id: ObjectId) -> Result<Option<Object>, StoreError> {
        Ok(self.objects.get(&id).cloned())
    }
}
