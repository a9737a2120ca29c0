//! Writes a selection to another store.
//!
//! Objects come first, in transactions of limited size, each after those that it names. The records of a
//! session follow in one transaction, together with those of other sessions as long as they fit. So no part of
//! a session is ever visible, and a repeated transfer continues where an earlier one was interrupted: what is
//! there already is compared, and not written again.
//!
//! A journal in the target that is the beginning of the moved one is extended. The moved journal may also be
//! the beginning of the one in the target: then it is already there. Journals that differ anywhere else are a
//! conflict, and nothing is changed. So are records that were redacted only in the moved journal.
//!
//! An import may append further records to what it creates or extends. They are part of the same transaction.

use backstitch_core::id::SessionId;
use backstitch_core::journal::{InboxItem, InboxKind, Position};
use backstitch_core::ports::{
    BundleError, ClaimMode, ImportChanges, Owner, SessionClaim, SessionRole, StoreError, TransferOutcome,
    TransferProgress, TransferReport, TransferStep, TransferredSession,
};
use rusqlite::Connection;

use super::Progress;
use super::contents::{Contents, MovedObject};
use super::selection::{SelectedSession, Selection};
use crate::sqlite::append::PreparedBatch;
use crate::sqlite::error::Failure;
use crate::sqlite::keys::{end_of, key_of, number_of};
use crate::sqlite::objects::{self, CompressedObject, Packer, Presence, presence};
use crate::sqlite::read::{checksum_at, existing, texts};
use crate::sqlite::row::{RecordRow, RowContext};
use crate::sqlite::store::SqliteStore;
use crate::sqlite::{append, changes, claims, generation, inbox, index, redactions};

/// A selection and the connection that it is read from, inside a transaction.
pub(super) struct Transfer<'a> {
    pub(super) source: &'a Connection,
    pub(super) selection: &'a Selection,
    pub(super) contents: &'a Contents,
    pub(super) changes: &'a ImportChanges,
}

/// Relation of a moved journal to the one in the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum JournalRelation {
    /// The target has no such session.
    New,
    /// The target's journal is the beginning of the moved one, and ends at this position.
    Extends(Position),
    /// The moved journal is the target's, or its beginning.
    Present,
    /// The journals differ from this position on.
    Differs(Position),
}

/// Sessions of one transaction, or the conflict that prevented it.
type GroupOutcome = Result<Vec<TransferredSession>, (SessionId, Position)>;

impl Transfer<'_> {
    /// Writes everything to an empty database. The caller has begun a transaction there.
    pub(super) fn write_new(
        &self,
        target: &Connection,
        progress: Progress<'_>,
    ) -> Result<TransferReport, BundleError> {
        let packer = Packer::default();
        let total = self.contents.objects.len() as u64;
        for (done, object) in (1..).zip(&self.contents.objects) {
            self.write_object(target, &packer, object)?;
            progress(TransferProgress { step: TransferStep::Objects, done, total });
        }
        let mut sessions = Vec::new();
        for one in &self.selection.sessions {
            sessions.push(self.write_session(target, one, JournalRelation::New)?);
        }
        Ok(self.report(sessions, total))
    }

    /// Writes everything that a store does not have.
    pub(super) fn write_to(
        &self,
        target: &SqliteStore,
        progress: Progress<'_>,
    ) -> Result<TransferReport, BundleError> {
        let mut is_complete = true;
        target.readers.at_once(|connection| {
            for one in &self.selection.sessions {
                let relation = self.relation(connection, one)?;
                if let JournalRelation::Differs(position) = relation {
                    return Ok(Err(BundleError::Conflict { session: one.session, position }));
                }
                is_complete &= relation == JournalRelation::Present;
            }
            Ok(Ok(()))
        })??;
        let before = target.readers.with(generation::current)?;
        let objects = if is_complete { 0 } else { self.write_objects(target, progress)? };
        let mut sessions = Vec::new();
        for group in self.groups(target.options.transaction_bytes) {
            match self.write_group(target, group, before)? {
                Ok(written) => sessions.extend(written),
                Err((session, position)) => return Err(BundleError::Conflict { session, position }),
            }
            let (done, total) = (sessions.len() as u64, self.selection.sessions.len() as u64);
            progress(TransferProgress { step: TransferStep::Sessions, done, total });
        }
        Ok(self.report(sessions, objects))
    }

    fn report(&self, sessions: Vec<TransferredSession>, objects: u64) -> TransferReport {
        TransferReport { session: self.selection.main, sessions, objects }
    }

    /// Compares a journal with the one in the target.
    fn relation(&self, target: &Connection, one: &SelectedSession) -> Result<JournalRelation, Failure> {
        let session = one.session;
        let Some(number) = number_of(target, &session.to_string())? else { return Ok(JournalRelation::New) };
        let there = end_of(target, session, number)?.0.number();
        let same = |position: u64| -> Result<bool, Failure> {
            let position = Position::new(position);
            let moved = checksum_at(self.source, session, one.number, position)?;
            Ok(moved == checksum_at(target, session, number, position)?)
        };
        let shared = there.min(one.records);
        if shared > 0 && !same(shared - 1)? {
            // Each checksum covers everything before it.
            let (mut low, mut high) = (0, shared - 1);
            while low < high {
                let middle = low + (high - low) / 2;
                if same(middle)? { low = middle + 1 } else { high = middle }
            }
            return Ok(JournalRelation::Differs(Position::new(low)));
        }
        if there >= one.records {
            return Ok(JournalRelation::Present);
        }
        // Checksums do not show redactions. One that the target lacks would be recorded there, and not made.
        let known = redactions::positions(target, number)?;
        let mut redacted = redactions::positions(self.source, one.number)?.into_iter();
        let missing = redacted.find(|position| position.number() < there && !known.contains(position));
        Ok(missing.map_or(JournalRelation::Extends(Position::new(there)), JournalRelation::Differs))
    }

    /// Writes all objects that the target does not have, and returns their number.
    fn write_objects(&self, target: &SqliteStore, progress: Progress<'_>) -> Result<u64, BundleError> {
        let (writer, limit) = (target.writer()?, target.options.transaction_bytes);
        let total = self.contents.objects.len() as u64;
        let (mut done, mut written) = (0_u64, 0_u64);
        let mut open = self.contents.objects.iter().peekable();
        while open.peek().is_some() {
            let written_now = writer.transact(|connection| {
                let (mut bytes, mut count) = (0, 0);
                while bytes < limit
                    && let Some(object) = open.next()
                {
                    let size = self.write_object(connection, &target.packer, object)?;
                    bytes += size.unwrap_or_default();
                    count += u64::from(size.is_some());
                    done += 1;
                    progress(TransferProgress { step: TransferStep::Objects, done, total });
                }
                Ok(count)
            });
            written += written_now.map_err(|error| target.explain(error))?;
        }
        Ok(written)
    }

    /// Writes an object that the target does not have, and returns its stored size.
    fn write_object(
        &self,
        target: &Connection,
        packer: &Packer,
        object: &MovedObject,
    ) -> Result<Option<u64>, Failure> {
        let there = presence(target, object.id)?;
        match object.presence {
            Presence::Stored if there != Presence::Stored => {
                let found = objects::get(self.source, object.id)?;
                let found = found.ok_or(StoreError::MissingObject { object: object.id })?;
                let packed = CompressedObject::new(packer, found)?;
                packed.insert(target)?;
                Ok(Some(packed.stored_bytes()))
            }
            mark @ (Presence::Pruned | Presence::Lost | Presence::Redacted) if there == Presence::Absent => {
                objects::leave_mark(target, object.id, mark)?;
                Ok(None)
            }
            _ => Ok(None),
        }
    }

    /// Divides the sessions into transactions. A session is never divided.
    fn groups(&self, limit: u64) -> Vec<&[SelectedSession]> {
        let mut bytes = 0_u64;
        let fits = |_: &SelectedSession, next: &SelectedSession| {
            bytes = bytes.saturating_add(next.bytes);
            let fits = bytes <= limit;
            if !fits {
                bytes = next.bytes;
            }
            fits
        };
        self.selection.sessions.chunk_by(fits).collect()
    }

    /// Writes sessions in one transaction. `before` is the garbage collection counter from before their
    /// objects were written.
    fn write_group(
        &self,
        target: &SqliteStore,
        group: &[SelectedSession],
        before: i64,
    ) -> Result<GroupOutcome, BundleError> {
        let write = |connection: &Connection| {
            let relations: Vec<JournalRelation> =
                group.iter().map(|one| self.relation(connection, one)).collect::<Result<_, _>>()?;
            for (one, relation) in group.iter().zip(&relations) {
                if let JournalRelation::Differs(position) = relation {
                    return Ok(Err((one.session, *position)));
                }
            }
            let is_new = relations.iter().any(|relation| *relation != JournalRelation::Present);
            if is_new && generation::current(connection)? != before {
                // Objects that nothing named yet may have been collected.
                for object in &self.contents.objects {
                    self.write_object(connection, &target.packer, object)?;
                }
            }
            let mut written = Vec::new();
            for (one, relation) in group.iter().zip(relations) {
                // Makes the fences of earlier holders stale, and fails with `Held` if a process holds the session.
                let claim = self.changes_journal(one, relation).then(|| {
                    let owner = Owner::new("a transfer");
                    claims::claim(&target.locks, connection, one.session, &owner, ClaimMode::IfFree)
                });
                let claim = claim.transpose()?;
                written.push(self.write_session(connection, one, relation)?);
                if let Some((claim, _guard)) = claim {
                    self.append_addition(target, connection, one, &claim)?;
                    claims::release(connection, one.session, claim.fence)?;
                }
            }
            Ok(Ok(written))
        };
        target.writer()?.transact(write).map_err(|error| target.explain(error).into())
    }

    /// Returns whether a journal that exists is extended, or one gets further records.
    fn changes_journal(&self, one: &SelectedSession, relation: JournalRelation) -> bool {
        match relation {
            JournalRelation::New => self.changes.additions.contains_key(&one.session),
            JournalRelation::Extends(_) => true,
            JournalRelation::Present | JournalRelation::Differs(_) => false,
        }
    }

    /// Appends the further records of a session that was written.
    fn append_addition(
        &self,
        target: &SqliteStore,
        connection: &Connection,
        one: &SelectedSession,
        claim: &SessionClaim,
    ) -> Result<(), Failure> {
        let Some(batch) = self.changes.additions.get(&one.session) else { return Ok(()) };
        let (session, end, packer) = (one.session, Position::new(one.records), &target.packer);
        let prepared = PreparedBatch::new(packer, session, end, claim.fence, batch.clone(), None)?;
        prepared.write(connection)?;
        Ok(())
    }

    fn write_session(
        &self,
        target: &Connection,
        one: &SelectedSession,
        relation: JournalRelation,
    ) -> Result<TransferredSession, Failure> {
        let (session, name) = (one.session, one.session.to_string());
        let (number, from, outcome) = match relation {
            JournalRelation::New => {
                (append::create(target, &name)?, Position::START, TransferOutcome::Created)
            }
            JournalRelation::Extends(from) => {
                (existing(target, session)?, from, TransferOutcome::Extended { from })
            }
            JournalRelation::Present | JournalRelation::Differs(_) => {
                let outcome = TransferOutcome::Present;
                return Ok(TransferredSession { session, role: one.role, records: one.records, outcome });
            }
        };
        let most = usize::try_from(one.records - from.number()).unwrap_or(usize::MAX);
        let mut before: Option<String> = None;
        texts(self.source, session, one.number, from, most, |position, text| {
            let checksum = checksum_at(self.source, session, one.number, position)?;
            let key = key_of(number, position).ok_or(StoreError::EmptyBatch)?;
            let context = RowContext { session: &name, before: before.as_deref() };
            RecordRow::of(text, context).insert(target, key, checksum)?;
            if let Some(source_key) = key_of(one.number, position) {
                redactions::copy_note((self.source, source_key), (target, key), text)?;
            }
            before = Some(text.to_owned());
            Ok(())
        })?;
        // Readers that can fold the journal index it again.
        index::forget(target, number)?;
        changes::rebuild(target, session, number)?;
        if one.role != SessionRole::Ancestor {
            self.write_inbox(target, session)?;
        }
        Ok(TransferredSession { session, role: one.role, records: one.records, outcome })
    }

    /// Adds pending items, except for those that are pending in the target too, and for decisions if an import leaves them out.
    fn write_inbox(&self, target: &Connection, session: SessionId) -> Result<(), Failure> {
        let there: Vec<InboxItem> = inbox::list(target, session)?.into_iter().map(|(_, item)| item).collect();
        for (_, item) in inbox::list(self.source, session)? {
            let is_left_out = self.changes.leaves_out_decisions && item.kind == InboxKind::Resolution;
            if !is_left_out && !there.contains(&item) {
                inbox::Letter::new(session, &item)?.write(target)?;
            }
        }
        Ok(())
    }
}
