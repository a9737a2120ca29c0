//! Redaction: removes a value from the records and objects of a session and its family.
//!
//! The sessions are claimed first, so nothing is appended to them meanwhile. Then, in transactions of limited
//! size:
//!
//! 1. saved snapshots, summaries and the index of changed paths are deleted; they are rebuilt from the journal;
//! 2. objects lose their content. An object that a record names gets a redacted copy. The pairs are part of a
//!    `redacted` record in the same transaction, so that an interrupted redaction finds them again;
//! 3. records are replaced, and made to name the copies. A `redacted` record in the same transaction names
//!    their positions;
//! 4. inbox items are replaced, and changed paths are listed again.
//!
//! Finally the store's files are rebuilt (`erase`). Each transaction leaves a sound store. Repeating an
//! interrupted redaction finds what is left to do, and always rebuilds the files.

use std::collections::{BTreeMap, HashMap};

use backstitch_core::crash_point;
use backstitch_core::id::SessionId;
use backstitch_core::journal::{ObjectRedacted, Point, Position, Record, RecordBody, RecordsRedacted};
use backstitch_core::object::{Object, ObjectId};
use backstitch_core::ports::{
    ClaimMode, Erasure, ErasureMode, Owner, RedactedSession, Redaction, RedactionReport, SessionClaim, Store,
    StoreError,
};
use backstitch_core::redaction::{
    MARKER, ObjectCopies, ObjectCopy, SensitiveValue, redact_content, redact_inbox_data, redact_record,
};
use backstitch_core::time::Timestamp;
use rusqlite::{Connection, params};

use super::contents::SqliteContents;
use super::erase::{erase, overwriting};
use super::error::Failure;
use super::objects::{self, CompressedObject, Presence};
use super::read::{self, numbered_sessions, texts};
use super::sql::{execute, rows};
use super::store::SqliteStore;
use super::{changes, generation, index, queue, redactions};
use crate::redaction::{Contents as _, Plan};

/// Number of records that are read at once.
const PAGE: usize = 1_000;

/// A session of the family.
type Member = (i64, SessionId);

impl SqliteStore {
    pub(super) async fn redact_value(&self, redaction: Redaction) -> Result<RedactionReport, StoreError> {
        if redaction.mode == ErasureMode::DryRun {
            return self.rehearse(&redaction);
        }
        let writer = self.writer()?;
        let session = redaction.session;
        let family = || {
            self.readers.at_once(|connection| {
                read::head(connection, session)?;
                Ok(SqliteContents(connection).origins()?.family(session))
            })
        };
        let claims = self.claim_all(&redaction.owner, family).await?;
        let redacted = self.redact_held(&redaction);
        self.release_all(claims).await;
        let mut report = redacted?;
        report.erasure = erase(writer);
        Ok(report)
    }

    /// Claims sessions until there are no more of them: while some are claimed, another process may fork one.
    pub(super) async fn claim_all(
        &self,
        owner: &Owner,
        sessions: impl Fn() -> Result<Vec<SessionId>, StoreError>,
    ) -> Result<Vec<SessionClaim>, StoreError> {
        let mut claims: Vec<SessionClaim> = Vec::new();
        let claimed: Result<(), StoreError> = async {
            loop {
                let is_claimed = |session: &SessionId| claims.iter().any(|claim| claim.session == *session);
                let next = sessions()?.into_iter().find(|session| !is_claimed(session));
                let Some(next) = next else { return Ok(()) };
                let claim = self.claim(next, owner.clone(), ClaimMode::IfFree).await?;
                claims.push(claim);
            }
        }
        .await;
        if let Err(error) = claimed {
            self.release_all(claims).await;
            return Err(error);
        }
        Ok(claims)
    }

    /// Releases sessions. A failure leaves a claim whose lock dies with this process.
    pub(super) async fn release_all(&self, claims: Vec<SessionClaim>) {
        for claim in claims {
            let _ = self.release(claim).await;
        }
    }

    /// Reports what a redaction would do.
    fn rehearse(&self, redaction: &Redaction) -> Result<RedactionReport, StoreError> {
        self.readers.at_once(|connection| {
            let plan = Plan::new(&SqliteContents(connection), redaction.session, &redaction.value)?;
            // The content of a copy does not matter here.
            let copy = ObjectCopy::from(&Object::blob(MARKER.as_bytes()));
            let copies = plan.contents.iter().map(|id| (*id, copy)).collect();
            let mut report = report_of(&plan);
            for id in plan.contents.iter().chain(&plan.files) {
                report.objects.push(ObjectRedacted { object: *id, replacement: None });
            }
            for member in &members(connection, &plan)? {
                let mut one = RedactedSession::new(member.1);
                let mut from = Position::START;
                while let Some(page) =
                    RedactedPage::read(connection, *member, from, &redaction.value, &copies, u64::MAX)?
                {
                    from = page.next;
                    page.report(*member, &mut one, &mut report);
                }
                one.inbox = changed_items(connection, member.1, &redaction.value)?.len() as u64;
                report.add(one);
            }
            report.erasure = Erasure::NotStarted;
            Ok(report)
        })
    }

    /// Redacts sessions that are claimed.
    fn redact_held(&self, redaction: &Redaction) -> Result<RedactionReport, StoreError> {
        let Redaction { session, value, at, .. } = redaction;
        let (writer, limit) = (self.writer()?, self.options.transaction_bytes);
        let (plan, family) = self.readers.at_once(|connection| {
            let plan = Plan::new(&SqliteContents(connection), *session, value)?;
            let members = members(connection, &plan)?;
            Ok((plan, members))
        })?;
        let mut report = report_of(&plan);
        let write = |run: &mut dyn FnMut(&Connection) -> Result<(), Failure>| overwriting(writer, run);
        write(&mut |connection| {
            family.iter().try_for_each(|(number, _)| {
                forget(connection, *number)?;
                // Until they are listed again.
                changes::mark_unlisted(connection, *number)
            })
        })?;
        crash_point!("redact.begun");

        let primary = family.iter().find(|(_, member)| member == session).copied();
        let primary = primary.ok_or(StoreError::NotFound { session: *session })?;
        let mut objects =
            plan.contents.iter().map(|id| (*id, true)).chain(plan.files.iter().map(|id| (*id, false)));
        loop {
            let mut done: Vec<ObjectRedacted> = Vec::new();
            write(&mut |connection| {
                let mut bytes = 0;
                for (id, has_copy) in objects.by_ref() {
                    let (redacted, written) = self.redact_object(connection, id, has_copy, value)?;
                    done.push(redacted);
                    bytes += written;
                    if bytes >= limit {
                        break;
                    }
                }
                if done.is_empty() {
                    return Ok(());
                }
                generation::increment(connection)?;
                let redacted = RecordsRedacted { objects: done.clone(), ..RecordsRedacted::default() };
                redactions::append(connection, primary.1, primary.0, redacted, *at)
            })?;
            if done.is_empty() {
                break;
            }
            report.objects.extend(done);
            crash_point!("redact.objects");
        }

        let copies = self.readers.at_once(|connection| copies_of(connection, &family))?;
        for member in &family {
            let mut one = RedactedSession::new(member.1);
            let mut from = Position::START;
            loop {
                let page = self.readers.at_once(|connection| {
                    RedactedPage::read(connection, *member, from, value, &copies, limit)
                })?;
                let Some(page) = page else { break };
                from = page.next;
                if !page.texts.is_empty() {
                    write(&mut |connection| page.write(connection, *member, *at))?;
                    crash_point!("redact.records");
                }
                page.report(*member, &mut one, &mut report);
            }
            let items = self.readers.with(|connection| changed_items(connection, member.1, value))?;
            if !items.is_empty() {
                write(&mut |connection| write_items(connection, &items))?;
                crash_point!("redact.inbox");
            }
            write(&mut |connection| changes::rebuild(connection, member.1, member.0))?;
            one.inbox = items.len() as u64;
            report.add(one);
        }
        Ok(report)
    }

    /// Removes the content of an object, after storing a redacted copy if it has one. Returns also the number
    /// of bytes that this writes.
    fn redact_object(
        &self,
        connection: &Connection,
        id: ObjectId,
        has_copy: bool,
        value: &SensitiveValue,
    ) -> Result<(ObjectRedacted, u64), Failure> {
        let object = objects::get(connection, id)?.ok_or(StoreError::MissingObject { object: id })?;
        let mut written = object.bytes().len() as u64;
        let mut replacement = None;
        if has_copy {
            let copy = Object::new(object.kind(), redact_content(object.bytes(), value));
            let copy = CompressedObject::new(&self.packer, copy)?;
            written += copy.stored_bytes();
            copy.insert(connection)?;
            replacement = Some(copy.object.id());
        }
        objects::leave_mark(connection, id, Presence::Redacted)?;
        Ok((ObjectRedacted { object: id, replacement }, written))
    }
}

/// Sessions of a plan with their numbers.
fn members(connection: &Connection, plan: &Plan) -> Result<Vec<Member>, Failure> {
    let all = numbered_sessions(connection)?.into_iter();
    Ok(all.filter(|(_, session)| plan.family.contains(session)).collect())
}

fn report_of(plan: &Plan) -> RedactionReport {
    RedactionReport {
        files: plan.paths.iter().cloned().collect(),
        file_names: plan.file_names.iter().copied().collect(),
        shared_with: plan.shared_with.clone(),
        elsewhere: plan.elsewhere.clone(),
        ..RedactionReport::default()
    }
}

/// Deletes what repeats the journal of a session.
pub(super) fn forget(connection: &Connection, number: i64) -> Result<(), Failure> {
    execute(connection, "DELETE FROM snapshots WHERE session = ?1", [number])?;
    changes::forget(connection, number)?;
    queue::forget_reason(connection, number)?;
    index::forget(connection, number)
}

/// Redacted copies of objects, as the `redacted` records of the family name them. A copy may have been
/// redacted itself since then.
fn copies_of(connection: &Connection, family: &[Member]) -> Result<ObjectCopies, Failure> {
    let mut pairs: HashMap<ObjectId, ObjectId> = HashMap::new();
    for (number, session) in family {
        texts(connection, *session, *number, Position::START, usize::MAX, |position, text| {
            // Most records are of another kind, and need not be decoded.
            if text.contains(r#""kind":"redacted""#)
                && let Ok(record) = Record::decode(position, text)
                && let RecordBody::Redacted(redacted) = &record.body
            {
                let named = redacted.objects.iter();
                pairs.extend(named.filter_map(|one| Some((one.object, one.replacement?))));
            }
            Ok(())
        })?;
    }
    let mut copies = ObjectCopies::new();
    for original in pairs.keys() {
        let mut latest = *original;
        for _ in 0..=pairs.len() {
            match pairs.get(&latest) {
                Some(next) if *next != latest => latest = *next,
                _ => break,
            }
        }
        // An original that was stored again since then holds what it held.
        if objects::stored_kind(connection, *original)?.is_none()
            && objects::stored_kind(connection, latest)?.is_some()
            && let Some(copy) = objects::get(connection, latest)?
        {
            copies.insert(*original, ObjectCopy::from(&copy));
        }
    }
    Ok(copies)
}

/// Replaced records of a part of a journal.
struct RedactedPage {
    texts: BTreeMap<Position, String>,
    replacements: u64,
    /// Records that hold the value still.
    kept: Vec<Position>,
    next: Position,
}

impl RedactedPage {
    /// Reads the next records and replaces their texts, until these have `limit` bytes. Returns `None` at the
    /// end of the journal.
    fn read(
        connection: &Connection,
        (number, session): Member,
        from: Position,
        value: &SensitiveValue,
        copies: &ObjectCopies,
        limit: u64,
    ) -> Result<Option<Self>, Failure> {
        let mut page = Self { texts: BTreeMap::new(), replacements: 0, kept: Vec::new(), next: from };
        let mut bytes = 0;
        texts(connection, session, number, from, PAGE, |position, text| {
            if bytes >= limit {
                return Ok(());
            }
            page.next = position.next();
            read::decode(session, position, text)?;
            let Some(redacted) = redact_record(position, text, value, copies) else { return Ok(()) };
            if redacted.kept > 0 {
                page.kept.push(position);
            }
            if redacted.replacements > 0 {
                page.replacements += redacted.replacements;
                bytes += redacted.text.len() as u64;
                page.texts.insert(position, redacted.text);
            }
            Ok(())
        })?;
        Ok((page.next != from).then_some(page))
    }

    /// Stores the new texts, and the record that says so.
    fn write(
        &self,
        connection: &Connection,
        (number, session): Member,
        at: Timestamp,
    ) -> Result<(), Failure> {
        for (position, text) in &self.texts {
            redactions::replace(connection, (number, session), *position, text, at)?;
        }
        let redacted = RecordsRedacted {
            positions: self.texts.keys().copied().collect(),
            replacements: self.replacements,
            ..RecordsRedacted::default()
        };
        redactions::append(connection, session, number, redacted, at)
    }

    fn report(&self, (_, session): Member, one: &mut RedactedSession, report: &mut RedactionReport) {
        one.positions.extend(self.texts.keys());
        one.replacements += self.replacements;
        report.kept.extend(self.kept.iter().map(|position| Point { session, position: *position }));
    }
}

/// Inbox items of a session that hold the value, by id, with their new data.
fn changed_items(
    connection: &Connection,
    session: SessionId,
    value: &SensitiveValue,
) -> Result<BTreeMap<i64, String>, Failure> {
    let sql = "SELECT id, data FROM inbox WHERE session = ?1";
    let items: Vec<(i64, String)> =
        rows(connection, sql, [session.to_string()], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let redacted = items.into_iter().filter_map(|(id, data)| {
        let redacted = redact_inbox_data(&data, value).filter(|redacted| redacted.replacements > 0)?;
        Some((id, redacted.text))
    });
    Ok(redacted.collect())
}

fn write_items(connection: &Connection, items: &BTreeMap<i64, String>) -> Result<(), Failure> {
    let sql = "UPDATE inbox SET data = ?2 WHERE id = ?1";
    items.iter().try_for_each(|(id, data)| execute(connection, sql, params![id, data]))
}
