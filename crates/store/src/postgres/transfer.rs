//! Sessions that are imported from bundles.
//!
//! Objects are written first, in transactions of limited size. Then sessions follow, as many in one transaction as fit, with the further records of the import. So no part of a
//! session is ever visible, and a repeated import continues where an earlier one was interrupted. A journal in the server that is the beginning of the moved one is extended; journals that differ are a conflict.

use backstitch_core::id::SessionId;
use backstitch_core::journal::{InboxItem, InboxKind, Position, Record};
use backstitch_core::object::ObjectId;
use backstitch_core::ports::{
    BundleError, FenceToken, ImportChanges, Owner, Progress, SessionRole, StoreError, TransferOutcome,
    TransferProgress, TransferReport, TransferStep, TransferredSession,
};
use uuid::Uuid;

use super::append::append_with;
use super::claims::HeldClaim;
use super::contents::PostgresContents;
use super::error::{Failure, corrupt};
use super::inbox::{self, Letter};
use super::lease;
use super::link::Link;
use super::objects::{self, generation};
use super::schema::get;
use super::server::parameters;
use super::store::SharedStore;
use super::{changes, index};
use crate::chain::Checksum;
use crate::packed::{CompressedObject, Presence};
use crate::reach::StoredObjects as _;
use crate::sqlite::{MovedBundle, MovedSession};

/// Number of records that a statement writes.
const RECORDS_AT_ONCE: usize = 500;

/// An import.
pub(super) struct Import<'a> {
    pub(super) link: &'a Link<'a>,
    pub(super) shared: &'a SharedStore,
    pub(super) bundle: &'a MovedBundle<'a>,
    pub(super) changes: &'a ImportChanges,
}

/// Relation of a moved journal to the one in the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum JournalRelation {
    /// There is no such session.
    New,
    /// The journal there is the beginning of the moved one, and ends at this position.
    Extends(Position),
    /// The moved journal is the one there, or its beginning.
    Present,
    /// The journals differ from this position on.
    Differs(Position),
}

/// A session in the server, locked by the transaction.
struct TargetSession {
    number: i64,
    is_created: bool,
    head: Position,
    chain: Checksum,
    fence: i64,
    claim: Option<Uuid>,
    worker: Option<Uuid>,
    owner: Option<String>,
}

impl Import<'_> {
    /// Writes everything that the server does not have.
    pub(super) fn run(
        &self,
        progress: Progress<'_, TransferProgress>,
    ) -> Result<TransferReport, BundleError> {
        self.shared.check_writable()?;
        let moved = self.bundle.sessions();
        let mut is_complete = true;
        for one in &moved {
            let relation = self.relation(one).map_err(StoreError::from)?;
            if let JournalRelation::Differs(position) = relation {
                return Err(BundleError::Conflict { session: one.session, position });
            }
            is_complete &= relation == JournalRelation::Present;
        }
        let before = generation(self.link).map_err(StoreError::from)?;
        let objects = if is_complete { 0 } else { self.write_objects(progress)? };
        let limit = self.link.server().options.transaction_bytes;
        let mut sessions: Vec<TransferredSession> = Vec::new();
        for group in groups(&moved, limit) {
            sessions.extend(self.write_group(group, before)?);
            let (done, total) = (sessions.len() as u64, moved.len() as u64);
            progress(TransferProgress { step: TransferStep::Sessions, done, total });
        }
        Ok(TransferReport { session: self.bundle.main(), sessions, objects })
    }

    /// Reads a session of the server, and locks it if the caller has begun a transaction.
    fn target(&self, session: SessionId) -> Result<Option<TargetSession>, Failure> {
        let sql =
            "SELECT id, created IS NOT NULL, head, chain, fence, claim, worker, owner FROM {schema}.sessions
            WHERE session = $1 FOR UPDATE";
        let rows = self.link.query(sql, parameters![*session.as_uuid() => UUID])?;
        let Some(row) = rows.first() else { return Ok(None) };
        Ok(Some(TargetSession {
            number: get(row, 0)?,
            is_created: get(row, 1)?,
            head: Position::new(get::<i64>(row, 2)?.cast_unsigned()),
            chain: Checksum::stored(get(row, 3)?)
                .ok_or_else(|| corrupt("a journal has an invalid checksum"))?,
            fence: get(row, 4)?,
            claim: get(row, 5)?,
            worker: get(row, 6)?,
            owner: get(row, 7)?,
        }))
    }

    /// Compares a journal with the one in the server.
    fn relation(&self, one: &MovedSession) -> Result<JournalRelation, Failure> {
        let session = one.session;
        let Some(target) = self.target(session)?.filter(|target| target.is_created) else {
            return Ok(JournalRelation::New);
        };
        let there = target.head.number();
        let same = |position: u64| -> Result<bool, Failure> {
            let position = Position::new(position);
            Ok(Some(self.bundle.checksum(session, position)?) == self.checksum(target.number, position)?)
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
        // Checksums do not show redactions. One that is missing here would be recorded, and not made.
        let sql = "SELECT position FROM {schema}.records WHERE session = $1 AND replaced IS NOT NULL";
        let known = self.link.query(sql, parameters![target.number => INT8])?;
        let known: Vec<u64> = known
            .iter()
            .map(|row| Ok(get::<i64>(row, 0)?.cast_unsigned()))
            .collect::<Result<_, Failure>>()?;
        let mut redacted = self.bundle.redacted(session)?.into_iter();
        let missing =
            redacted.find(|position| position.number() < there && !known.contains(&position.number()));
        Ok(missing.map_or(JournalRelation::Extends(Position::new(there)), JournalRelation::Differs))
    }

    fn checksum(&self, number: i64, position: Position) -> Result<Option<Checksum>, Failure> {
        let sql = "SELECT checksum FROM {schema}.records WHERE session = $1 AND position = $2";
        let values = parameters![number => INT8, position.number().cast_signed() => INT8];
        let rows = self.link.query(sql, values)?;
        Ok(rows.first().map(|row| get::<&[u8]>(row, 0)).transpose()?.and_then(Checksum::stored))
    }

    /// Writes all objects that the server does not have, each after those that it names, and returns their number.
    fn write_objects(&self, progress: Progress<'_, TransferProgress>) -> Result<u64, BundleError> {
        let contents = PostgresContents::new(self.link);
        let limit = self.link.server().options.transaction_bytes;
        let total = self.bundle.objects().len() as u64;
        let (mut written, mut group, mut bytes) = (0, Vec::new(), 0);
        let flush = |group: &mut Vec<CompressedObject>| -> Result<(), StoreError> {
            let objects = std::mem::take(group);
            Ok(self.link.wait(objects::write_ahead(self.link.server(), objects))?)
        };
        for (done, (id, presence)) in (1..).zip(self.bundle.objects()) {
            match (presence, contents.presence(id)?) {
                (Presence::Stored, there) if there != Presence::Stored => {
                    let packed = CompressedObject::new(&self.shared.packer, self.bundle.object(id)?)?;
                    bytes += packed.stored_bytes();
                    group.push(packed);
                    written += 1;
                    if bytes >= limit {
                        flush(&mut group)?;
                        bytes = 0;
                    }
                }
                (mark @ (Presence::Pruned | Presence::Lost | Presence::Redacted), Presence::Absent) => {
                    objects::note_mark(self.link, id, mark).map_err(StoreError::from)?;
                }
                _ => {}
            }
            progress(TransferProgress { step: TransferStep::Objects, done, total });
        }
        flush(&mut group)?;
        Ok(written)
    }

    /// Writes sessions in one transaction. `before` is the counter of removed content from before their objects were written.
    fn write_group(
        &self,
        group: &[MovedSession],
        before: i64,
    ) -> Result<Vec<TransferredSession>, BundleError> {
        let living = self.link.wait(lease::living(&self.shared.server, &self.shared.lease));
        let living = living.map_err(StoreError::from)?;
        let mut conflict = None;
        let written: Result<Vec<TransferredSession>, Failure> = self.link.transact(|| {
            // In one order in all programs, so that they do not wait for each other in a circle.
            let mut ids: Vec<SessionId> = group.iter().map(|one| one.session).collect();
            ids.sort_unstable();
            for id in &ids {
                let sql = "INSERT INTO {schema}.sessions (session, chain) VALUES ($1, $2) ON CONFLICT (session) DO NOTHING";
                let start = Checksum::start(*id);
                self.link.query(sql, parameters![*id.as_uuid() => UUID, start.as_bytes() => BYTEA])?;
                self.target(*id)?;
            }
            let mut relations = Vec::new();
            for one in group {
                let relation = self.relation(one)?;
                if let JournalRelation::Differs(position) = relation {
                    conflict = Some((one.session, position));
                    return Err(StoreError::EmptyBatch.into());
                }
                relations.push(relation);
            }
            if relations.iter().any(|relation| *relation != JournalRelation::Present) {
                self.check_objects(before)?;
            }
            let mut written = Vec::new();
            for (one, relation) in group.iter().zip(relations) {
                written.push(self.write_session(one, relation, &living)?);
            }
            Ok(written)
        });
        if let Some((session, position)) = conflict {
            return Err(BundleError::Conflict { session, position });
        }
        Ok(written.map_err(StoreError::from)?)
    }

    /// Makes sure that all objects are still there: what nothing named yet may have been collected. Waits for a collection, and makes later ones wait.
    fn check_objects(&self, before: i64) -> Result<(), Failure> {
        let lock = self
            .link
            .names()
            .fill("SELECT pg_catalog.pg_advisory_xact_lock_shared(pg_catalog.hashtextextended('{schema} objects', 0))");
        self.link.query(&lock, &[])?;
        if generation(self.link)? == before {
            return Ok(());
        }
        let contents = PostgresContents::new(self.link);
        let gone: Vec<ObjectId> = self
            .bundle
            .objects()
            .filter(|(_, presence)| *presence == Presence::Stored)
            .map(|(id, _)| Ok((id, contents.presence(id)?)))
            .filter_map(|found: Result<_, StoreError>| match found {
                Ok((id, Presence::Absent)) => Some(Ok(id)),
                Ok(_) => None,
                Err(error) => Some(Err(error)),
            })
            .collect::<Result<_, _>>()?;
        for id in gone {
            let packed = CompressedObject::new(&self.shared.packer, self.bundle.object(id)?)?;
            let rows = objects::ObjectRows::write_parts_with(self.link, vec![packed])?;
            rows.store_with(self.link)?;
        }
        Ok(())
    }

    fn write_session(
        &self,
        one: &MovedSession,
        relation: JournalRelation,
        living: &[Uuid],
    ) -> Result<TransferredSession, Failure> {
        let (session, role, records) = (one.session, one.role, one.records);
        let (from, outcome) = match relation {
            JournalRelation::New => (Position::START, TransferOutcome::Created),
            JournalRelation::Extends(from) => (from, TransferOutcome::Extended { from }),
            JournalRelation::Present | JournalRelation::Differs(_) => {
                let outcome = TransferOutcome::Present;
                return Ok(TransferredSession { session, role, records, outcome });
            }
        };
        let target = self.target(session)?.ok_or(StoreError::NotFound { session })?;
        if target.claim.is_some() && target.worker.is_some_and(|worker| living.contains(&worker)) {
            let owner = Owner::new(target.owner.unwrap_or_default());
            return Err(StoreError::Held { session, owner, process: None }.into());
        }
        let chain = self.write_records(one, target.number, from, target.chain)?;
        let addition = self.changes.additions.get(&session);
        // Makes the fences of earlier holders stale.
        let sql = "UPDATE {schema}.sessions SET head = $2, chain = $3, created = coalesce(created, pg_catalog.nextval('{schema}.creations')),
            fence = fence + 1, claim = pg_catalog.gen_random_uuid() WHERE id = $1 RETURNING claim";
        let values =
            parameters![target.number => INT8, records.cast_signed() => INT8, chain.as_bytes() => BYTEA];
        let rows = self.link.query(sql, values)?;
        let claim: Uuid = get(rows.first().ok_or(StoreError::NotFound { session })?, 0)?;
        let sql = "DELETE FROM {schema}.removals WHERE session = $1";
        self.link.query(sql, parameters![*session.as_uuid() => UUID])?;
        // Readers that can fold the journal index it again.
        index::forget(self.link, target.number)?;
        changes::rebuild(self.link, session, target.number)?;
        if role != SessionRole::Ancestor {
            self.write_inbox(session, target.number)?;
        }
        if let Some(batch) = addition {
            let generation = generation(self.link)?;
            let (number, head) = (target.number, Position::new(records));
            let held = HeldClaim { number, claim, worker: Uuid::nil(), generation, head, chain };
            let fence = FenceToken((target.fence + 1).cast_unsigned());
            append_with(self.link, &self.shared.packer, (session, fence), &held, batch.clone())?;
        }
        let sql = "UPDATE {schema}.sessions SET claim = NULL, worker = NULL, owner = NULL, since = NULL WHERE id = $1";
        self.link.query(sql, parameters![target.number => INT8])?;
        Ok(TransferredSession { session, role, records, outcome })
    }

    /// Writes the records of a session, and returns the checksum of the last.
    fn write_records(
        &self,
        one: &MovedSession,
        number: i64,
        from: Position,
        mut last: Checksum,
    ) -> Result<Checksum, Failure> {
        let mut rows = RecordRows::default();
        self.bundle.records(one.session, from, |moved| {
            last = moved.checksum;
            let session = one.session;
            let record = Record::decode(moved.position, moved.text)
                .map_err(|source| StoreError::BrokenRecord { session, source })?;
            rows.positions.push(moved.position.number().cast_signed());
            rows.kinds.push(record.body.kind());
            rows.times.push(record.at.unix_micros());
            rows.texts.push(moved.text.to_owned());
            rows.sums.push(moved.checksum.as_bytes().to_vec());
            let replaced = moved.replaced_at.as_ref().map(|_| Checksum::alone(moved.text.as_bytes()));
            rows.replaced.push(replaced.map(|checksum| checksum.as_bytes().to_vec()));
            rows.replaced_at.push(moved.replaced_at);
            if rows.positions.len() >= RECORDS_AT_ONCE {
                std::mem::take(&mut rows).write(self.link, number)?;
            }
            Ok::<_, Failure>(())
        })?;
        rows.write(self.link, number)?;
        Ok(last)
    }

    /// Adds pending items, except for those that are pending here too, and for decisions if an import leaves them out.
    fn write_inbox(&self, session: SessionId, number: i64) -> Result<(), Failure> {
        let there: Vec<InboxItem> =
            inbox::list_with(self.link, session)?.into_iter().map(|(_, item)| item).collect();
        for item in self.bundle.inbox(session)? {
            let is_left_out = self.changes.leaves_out_decisions && item.kind == InboxKind::Resolution;
            if !is_left_out && !there.contains(&item) {
                Letter::new(session, &item)?.write(self.link, number)?;
            }
        }
        Ok(())
    }
}

/// Records as columns of rows.
#[derive(Default)]
struct RecordRows {
    positions: Vec<i64>,
    kinds: Vec<&'static str>,
    times: Vec<i64>,
    texts: Vec<String>,
    sums: Vec<Vec<u8>>,
    replaced: Vec<Option<Vec<u8>>>,
    replaced_at: Vec<Option<String>>,
}

impl RecordRows {
    fn write(self, link: &Link<'_>, number: i64) -> Result<(), Failure> {
        let sql = "INSERT INTO {schema}.records (session, position, kind, at, record, checksum, replaced, replaced_at)
            SELECT $1, r.* FROM unnest($2::bigint[], $3::text[], $4::bigint[], $5::text[], $6::bytea[], $7::bytea[], $8::text[]) AS r";
        let values = parameters![
            number => INT8, self.positions => INT8_ARRAY, self.kinds => TEXT_ARRAY, self.times => INT8_ARRAY,
            self.texts => TEXT_ARRAY, self.sums => BYTEA_ARRAY, self.replaced => BYTEA_ARRAY, self.replaced_at => TEXT_ARRAY
        ];
        link.query(sql, values).map(drop)
    }
}

/// Divides sessions into transactions. A session is never divided.
fn groups(sessions: &[MovedSession], limit: u64) -> Vec<&[MovedSession]> {
    let mut bytes = 0_u64;
    let fits = |_: &MovedSession, next: &MovedSession| {
        bytes = bytes.saturating_add(next.bytes);
        let fits = bytes <= limit;
        if !fits {
            bytes = next.bytes;
        }
        fits
    };
    sessions.chunk_by(fits).collect()
}
