//! Salvage: copies the sound parts of a damaged store.
//!
//! The old store is only read, and if its end is missing, a copy of it that has as many pages as it should have. The new store receives the longest intact prefix of each session, with all
//! objects that it names. An object that cannot be read is marked as lost, so that reading it later fails
//! with `LostObject`. Claims keep their fences, so that no earlier writer can write to the new store.

use std::collections::HashSet;
use std::path::Path;

use backstitch_core::id::SessionId;
use backstitch_core::journal::{Position, RecordBody};
use backstitch_core::object::ObjectId;
use backstitch_core::ports::{
    Damage, FenceToken, LostTail, OpenError, SalvageReport, SalvagedSession, SavedSnapshot, StoreError,
};
use rusqlite::{Connection, params};

use super::error::{Failure, chain_of, open_error};
use super::keys::{first_key, last_key};
use super::objects::{self, CompressedObject, Packer, Presence, presence};
use super::open::{self, absolute};
use super::padded::PaddedCopy;
use super::read::{decode, numbered_sessions, numbers_with_records, texts};
use super::row::{RecordRow, RowContext, TEXT_COLUMNS, text_in};
use super::snapshots::PreparedSnapshot;
use super::store::SqliteStore;
use super::writer::transaction;
use super::{changes, generation, inbox, queue, redactions, removals, schema, snapshots};
use crate::chain::Checksum;
use crate::references::{References, below, named_in_manifest};

impl SqliteStore {
    /// Copies the sound parts of the store at `from` to a new store at `to`, which must not exist. The old
    /// store is not changed.
    pub fn salvage(from: impl AsRef<Path>, to: impl AsRef<Path>) -> Result<SalvageReport, OpenError> {
        let (from, to) = (from.as_ref(), to.as_ref());
        if to.exists() {
            return Err(OpenError::Exists { path: to.to_owned() });
        }
        match open::for_salvage(from) {
            Ok(old) => copy_sound(&old, to),
            Err(refused @ OpenError::Store(_)) => match PaddedCopy::of(from, &absolute(to)?)? {
                Some(padded) => {
                    let old = padded.connection().ok_or(refused)?;
                    schema::read_as_newest(old).map_err(open_error)?;
                    copy_sound(old, to)
                }
                None => Err(refused),
            },
            Err(refused) => Err(refused),
        }
    }
}

/// Copies the sound parts of a store to a new one.
fn copy_sound(old: &Connection, to: &Path) -> Result<SalvageReport, OpenError> {
    let new = SqliteStore::open(to)?;
    let report = new.writer()?.alone(|new| {
        old.execute_batch("BEGIN")?;
        let salvage = Salvage { old, new, packer: Packer::default(), report: SalvageReport::default() };
        transaction(new, || salvage.run())
    })?;
    Ok(report)
}

struct Salvage<'a> {
    old: &'a Connection,
    new: &'a Connection,
    packer: Packer,
    report: SalvageReport,
}

impl Salvage<'_> {
    /// Returns what was done, or notes why it was not.
    fn or_note<T: Default>(&mut self, what: &str, done: Result<T, Failure>) -> T {
        done.unwrap_or_else(|error| {
            self.report.notes.push(format!("{what}: {}", chain_of(&error.0)));
            T::default()
        })
    }

    fn run(mut self) -> Result<SalvageReport, Failure> {
        for (number, session) in self.all_sessions() {
            self.session(number, session)?;
        }
        let claims = self.claims();
        self.or_note("claims", claims);
        self.or_note("removals", removals::copy_notes(self.old, self.new));
        self.or_note("the queue", queue::copy(self.old, self.new));
        generation::increment(self.new)?;
        Ok(self.report)
    }

    /// Lists all sessions, including those that only their records name.
    fn all_sessions(&mut self) -> Vec<(i64, SessionId)> {
        let mut all = self.or_note("the list of sessions", numbered_sessions(self.old));
        // Records of a session that is being removed are not a loss.
        let pending = removals::pending(self.old).unwrap_or_default();
        let known: HashSet<i64> = all.iter().map(|(number, _)| *number).chain(pending).collect();
        let found = self.or_note("the list of records", numbers_with_records(self.old));
        let strays = found.into_iter().filter(|number| !known.contains(number));
        all.extend(strays.filter_map(|number| Some((number, named_by_first(self.old, number)?))));
        all.sort_unstable();
        let mut unique = HashSet::new();
        all.retain(|(number, session)| (0..1 << 31).contains(number) && unique.insert(*session));
        all
    }

    fn session(&mut self, number: i64, session: SessionId) -> Result<(), Failure> {
        let mut kept = 0_u64;
        let mut checksum = Checksum::start(session);
        let mut named = Vec::new();
        let (old, new) = (self.old, self.new);
        let (name, mut before) = (session.to_string(), None::<String>);
        let mut wrote = Ok(());
        let read = texts(old, session, number, Position::START, usize::MAX, |position, text| {
            let record = decode(session, position, text)?;
            let begins =
                matches!(&record.body, RecordBody::SessionCreated(created) if created.session_id == session);
            if begins != (position == Position::START) {
                return Err(StoreError::Beginning { session }.into());
            }
            checksum = checksum.next(text.as_bytes());
            let row = RecordRow::of(text, RowContext { session: &name, before: before.as_deref() });
            wrote = write_record(new, number, &name, position, checksum, &row).and_then(|()| {
                let key = first_key(number) + position.number().cast_signed();
                redactions::copy_note((old, key), (new, key), text)
            });
            if wrote.is_err() {
                return Err(StoreError::EmptyBatch.into());
            }
            before = Some(text.to_owned());
            kept += 1;
            named.push((References::in_text(text), record.body.object_refs()));
            Ok(())
        });
        wrote?;
        let lost = read.err().map(|error| self.describe_loss(number, Position::new(kept), &error.0));
        for (named, needed) in named {
            let roots = named.roots.iter();
            for root in roots {
                self.objects(root.manifest, ReferenceForm::Manifest)?;
                self.objects(root.tree, ReferenceForm::Object)?;
            }
            for id in needed {
                self.objects(id, ReferenceForm::Object)?;
            }
            for id in named.objects {
                if matches!(presence(old, id), Ok(Presence::Stored)) {
                    self.objects(id, ReferenceForm::Object)?;
                }
            }
        }
        if kept > 0 {
            self.extras(number, session, Position::new(kept));
        }
        self.report.sessions.push(SalvagedSession { session, records: kept, lost });
        Ok(())
    }

    fn describe_loss(&mut self, number: i64, position: Position, error: &StoreError) -> LostTail {
        let reason = match error {
            StoreError::Damaged { position: at, damage, .. } if *at == position => damage.to_string(),
            StoreError::Damaged { damage: damage @ Damage::Gap, .. } => damage.to_string(),
            error => chain_of(error),
        };
        let sql = "SELECT count(*) FROM records WHERE id BETWEEN ?1 AND ?2";
        let from = first_key(number) + position.number().cast_signed();
        let count = self.old.query_row(sql, [from, last_key(number)], |row| row.get::<_, i64>(0));
        LostTail { position, reason, records: count.map_or(0, i64::cast_unsigned) }
    }

    /// Copies an object with everything below it, or marks it as lost.
    fn objects(&mut self, id: ObjectId, what: ReferenceForm) -> Result<(), Failure> {
        let mut open = vec![(id, what)];
        while let Some((id, what)) = open.pop() {
            let known = presence(self.new, id)?;
            // A blob may be copied as a file before it turns out to be a manifest too.
            if known != Presence::Absent && !(known == Presence::Stored && what == ReferenceForm::Manifest) {
                continue;
            }
            let object = match objects::get(self.old, id) {
                Ok(Some(object)) => object,
                gone => {
                    let mark = match gone {
                        Err(Failure(StoreError::Pruned { .. })) => Presence::Pruned,
                        Err(Failure(StoreError::Redacted { .. })) => Presence::Redacted,
                        _ => Presence::Lost,
                    };
                    objects::leave_mark(self.new, id, mark)?;
                    self.report.lost_objects.extend((mark == Presence::Lost).then_some(id));
                    continue;
                }
            };
            let named = match what {
                ReferenceForm::Manifest => named_in_manifest(object.bytes()).unwrap_or_default(),
                ReferenceForm::Object => below(&object).unwrap_or_default(),
            };
            open.extend(named.into_iter().map(|id| (id, ReferenceForm::Object)));
            if known == Presence::Absent {
                CompressedObject::new(&self.packer, object)?.insert(self.new)?;
                self.report.objects += 1;
            }
        }
        Ok(())
    }

    /// Copies the snapshot and the inbox of a session, and lists the paths that its calls changed.
    fn extras(&mut self, number: i64, session: SessionId, head: Position) {
        // A snapshot only repeats the journal, so nothing is lost with one that cannot be read.
        if let Ok(Some(saved)) = snapshots::get(self.old, session, None)
            && saved.position <= head
        {
            let SavedSnapshot { position, bytes } = saved;
            let snapshot = PreparedSnapshot::new(&self.packer, session, FenceToken(0), position, &bytes);
            let put = snapshot.and_then(|snapshot| snapshot.insert(self.new, number));
            self.or_note(&format!("the snapshot of session {session}"), put);
        }
        let listed = changes::rebuild(self.new, session, number);
        self.or_note(&format!("the changed paths of session {session}"), listed);
        let copied = inbox::list(self.old, session).and_then(|items| inbox::put(self.new, session, &items));
        self.or_note(&format!("the inbox of session {session}"), copied);
    }

    /// Copies the fences. No session is held in the new store.
    fn claims(&mut self) -> Result<(), Failure> {
        let mut sql = self.old.prepare("SELECT session, fence FROM claims")?;
        let mut rows = sql.query([])?;
        while let Some(row) = rows.next()? {
            let (session, fence): (String, i64) = (row.get(0)?, row.get(1)?);
            let sql = "INSERT OR REPLACE INTO claims (session, fence) VALUES (?1, ?2)";
            self.new.execute(sql, params![session, fence])?;
        }
        Ok(())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReferenceForm {
    /// The object is a workspace manifest: references are strings in its JSON.
    Manifest,
    /// The object's kind determines its references.
    Object,
}

/// Finds the session id in the first record of a numbered journal.
fn named_by_first(old: &Connection, number: i64) -> Option<SessionId> {
    let sql = format!("SELECT {TEXT_COLUMNS} FROM records WHERE id = ?1");
    let mut sql = old.prepare(&sql).ok()?;
    let mut rows = sql.query([number << 32]).ok()?;
    let alone = RowContext { session: "", before: None };
    let text = text_in(rows.next().ok()??, 0, alone).ok()??;
    match text.decode(Position::START).ok()?.body {
        RecordBody::SessionCreated(created) => Some(created.session_id),
        _ => None,
    }
}

fn write_record(
    new: &Connection,
    number: i64,
    session: &str,
    position: Position,
    checksum: Checksum,
    row: &RecordRow<'_>,
) -> Result<(), Failure> {
    if position == Position::START {
        let sql = "INSERT INTO sessions (id, session) VALUES (?1, ?2)";
        new.execute(sql, params![number, session])?;
    }
    let key = first_key(number) + position.number().cast_signed();
    row.insert(new, key, checksum)
}
