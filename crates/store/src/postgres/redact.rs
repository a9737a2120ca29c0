//! Redaction: removes a value from the records and objects of a session and its family.
//!
//! The sessions are claimed first, so nothing is appended to them meanwhile. Then, in transactions of limited size: what repeats the journal is deleted; objects lose
//! their content, those that a record names after a redacted copy was stored; records are replaced, and made to name the copies; inbox items are replaced, and changed paths
//! are listed again. A `redacted` record in the same transaction says what was done. Each transaction leaves a sound store, and repeating an interrupted redaction finds what is left to do.
//!
//! Finally the server cleans its tables; earlier versions of replaced rows stay in its log and in backups for as long as those are kept.

use std::collections::{BTreeMap, HashMap};

use backstitch_core::crash_point;
use backstitch_core::id::SessionId;
use backstitch_core::journal::{ObjectRedacted, Point, Position, Record, RecordBody, RecordsRedacted};
use backstitch_core::object::{Object, ObjectId};
use backstitch_core::ports::{Erasure, ErasureMode, RedactedSession, Redaction, RedactionReport, StoreError};
use backstitch_core::redaction::{
    MARKER, ObjectCopies, ObjectCopy, SensitiveValue, redact_content, redact_inbox_data, redact_record,
};
use backstitch_core::time::Timestamp;

use super::changes;
use super::contents::PostgresContents;
use super::error::{Failure, corrupt};
use super::link::Link;
use super::objects::{self, ObjectRows, begin_removing, count_removal, get_object};
use super::records::{decode, existing, numbered_sessions, texts};
use super::remove::{clean, forget};
use super::schema::get;
use super::server::parameters;
use super::store::{PostgresStore, SharedStore};
use crate::chain::Checksum;
use crate::packed::{CompressedObject, Presence};
use crate::reach::StoredObjects as _;
use crate::redaction::{Contents as _, Plan};

/// Number of records that are read at once.
const PAGE: usize = 1_000;

/// A session of the family.
type Member = (i64, SessionId);

impl PostgresStore {
    pub(super) async fn redact_value(&self, redaction: Redaction) -> Result<RedactionReport, StoreError> {
        if redaction.mode == ErasureMode::DryRun {
            return self.in_thread(|link| rehearse(link, &redaction));
        }
        self.shared().check_writable()?;
        let session = redaction.session;
        let family = || {
            self.in_thread(|link| {
                existing(link, session)?;
                Ok(PostgresContents::new(link).origins()?.family(session))
            })
        };
        let claims = self.claim_all(&redaction.owner, family).await?;
        let redacted = self.in_thread(|link| redact_held(link, self.shared(), &redaction));
        self.release_all(claims).await;
        let mut report = redacted?;
        report.erasure = self.in_thread(clean);
        Ok(report)
    }
}

/// Reports what a redaction would do.
fn rehearse(link: &Link<'_>, redaction: &Redaction) -> Result<RedactionReport, StoreError> {
    let plan = Plan::new(&PostgresContents::new(link), redaction.session, &redaction.value)?;
    // The content of a copy does not matter here.
    let copy = ObjectCopy::from(&Object::blob(MARKER.as_bytes()));
    let copies = plan.contents.iter().map(|id| (*id, copy)).collect();
    let mut report = report_of(&plan);
    for id in plan.contents.iter().chain(&plan.files) {
        report.objects.push(ObjectRedacted { object: *id, replacement: None });
    }
    for member in &members(link, &plan)? {
        let mut one = RedactedSession::new(member.1);
        let mut from = Position::START;
        while let Some(page) = RedactedPage::read(link, *member, from, &redaction.value, &copies, u64::MAX)? {
            from = page.next;
            page.report(*member, &mut one, &mut report);
        }
        one.inbox = changed_items(link, *member, &redaction.value)?.len() as u64;
        report.add(one);
    }
    report.erasure = Erasure::NotStarted;
    Ok(report)
}

/// Redacts sessions that are claimed.
fn redact_held(
    link: &Link<'_>,
    shared: &SharedStore,
    redaction: &Redaction,
) -> Result<RedactionReport, StoreError> {
    let Redaction { session, value, at, .. } = redaction;
    let limit = link.server().options.transaction_bytes;
    let plan = Plan::new(&PostgresContents::new(link), *session, value)?;
    let family = members(link, &plan)?;
    let mut report = report_of(&plan);
    link.transact(|| {
        family.iter().try_for_each(|(number, _)| {
            forget(link, *number)?;
            // Until they are listed again.
            changes::mark_unlisted(link, *number)
        })
    })?;
    crash_point!("redact.begun");

    let primary = family.iter().find(|(_, member)| member == session).copied();
    let primary = primary.ok_or(StoreError::NotFound { session: *session })?;
    let mut open = plan.contents.iter().map(|id| (*id, true)).chain(plan.files.iter().map(|id| (*id, false)));
    loop {
        let mut done: Vec<ObjectRedacted> = Vec::new();
        link.transact(|| {
            begin_removing(link)?;
            let mut bytes = 0;
            for (id, has_copy) in open.by_ref() {
                let (redacted, written) = redact_object(link, shared, id, has_copy, value)?;
                done.push(redacted);
                bytes += written;
                if bytes >= limit {
                    break;
                }
            }
            if done.is_empty() {
                return Ok(());
            }
            count_removal(link)?;
            let redacted = RecordsRedacted { objects: done.clone(), ..RecordsRedacted::default() };
            append(link, primary, redacted, *at)
        })?;
        if done.is_empty() {
            break;
        }
        report.objects.extend(done);
        crash_point!("redact.objects");
    }

    let copies = copies_of(link, &family)?;
    for member in &family {
        let mut one = RedactedSession::new(member.1);
        let mut from = Position::START;
        while let Some(page) = RedactedPage::read(link, *member, from, value, &copies, limit)? {
            from = page.next;
            if !page.texts.is_empty() {
                link.transact(|| page.write(link, *member, *at))?;
                crash_point!("redact.records");
            }
            page.report(*member, &mut one, &mut report);
        }
        let items = changed_items(link, *member, value)?;
        if !items.is_empty() {
            link.transact(|| {
                items.iter().try_for_each(|(id, data)| {
                    let sql = "UPDATE {schema}.inbox SET data = $2 WHERE id = $1";
                    link.query(sql, parameters![*id => INT8, *data => TEXT]).map(drop)
                })
            })?;
            crash_point!("redact.inbox");
        }
        link.transact(|| changes::rebuild(link, member.1, member.0))?;
        one.inbox = items.len() as u64;
        report.add(one);
    }
    Ok(report)
}

/// Removes the content of an object, after storing a redacted copy if it has one. Returns also the number of bytes that this writes.
fn redact_object(
    link: &Link<'_>,
    shared: &SharedStore,
    id: ObjectId,
    has_copy: bool,
    value: &SensitiveValue,
) -> Result<(ObjectRedacted, u64), Failure> {
    let object = get_object(link, id)?.ok_or(StoreError::MissingObject { object: id })?;
    let mut written = object.bytes().len() as u64;
    let mut replacement = None;
    if has_copy {
        let copy = Object::new(object.kind(), redact_content(object.bytes(), value));
        let copy = CompressedObject::new(&shared.packer, copy)?;
        written += copy.stored_bytes();
        replacement = Some(copy.object.id());
        ObjectRows::write_parts_with(link, vec![copy])?.store_with(link)?;
    }
    objects::leave_marks(link, &[id.as_bytes().to_vec()], Presence::Redacted)?;
    Ok((ObjectRedacted { object: id, replacement }, written))
}

/// Sessions of a plan with their numbers.
fn members(link: &Link<'_>, plan: &Plan) -> Result<Vec<Member>, Failure> {
    let all = numbered_sessions(link)?.into_iter();
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

/// Appends the record of a redaction. The caller holds the session and has begun a transaction.
fn append(
    link: &Link<'_>,
    (number, session): Member,
    redacted: RecordsRedacted,
    at: Timestamp,
) -> Result<(), Failure> {
    let sql = "SELECT head, chain FROM {schema}.sessions WHERE id = $1 FOR UPDATE";
    let rows = link.query(sql, parameters![number => INT8])?;
    let row = rows.first().ok_or(StoreError::NotFound { session })?;
    let position = Position::new(get::<i64>(row, 0)?.cast_unsigned());
    let before =
        Checksum::stored(get(row, 1)?).ok_or_else(|| corrupt("a journal has an invalid checksum"))?;
    let record = Record::new(position, at, RecordBody::from(redacted));
    let text = record.encode().map_err(|source| StoreError::Unstorable { session, position, source })?;
    let checksum = before.next(text.as_bytes());
    let sql = "INSERT INTO {schema}.records (session, position, kind, at, record, checksum) VALUES ($1, $2, $3, $4, $5, $6)";
    let values = parameters![
        number => INT8, position.number().cast_signed() => INT8, record.body.kind() => TEXT, at.unix_micros() => INT8,
        text => TEXT, checksum.as_bytes() => BYTEA
    ];
    link.query(sql, values)?;
    let sql = "UPDATE {schema}.sessions SET head = head + 1, chain = $2 WHERE id = $1";
    link.query(sql, parameters![number => INT8, checksum.as_bytes() => BYTEA]).map(drop)
}

/// Redacted copies of objects, as the `redacted` records of the family name them. A copy may have been redacted itself since then.
fn copies_of(link: &Link<'_>, family: &[Member]) -> Result<ObjectCopies, Failure> {
    let mut pairs: HashMap<ObjectId, ObjectId> = HashMap::new();
    for (_, session) in family {
        texts(link, *session, Position::START, usize::MAX, |position, text| {
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
    let contents = PostgresContents::new(link);
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
        if contents.stored_kind(*original)?.is_none()
            && contents.stored_kind(latest)?.is_some()
            && let Some(copy) = get_object(link, latest)?
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
    /// Reads the next records and replaces their texts, until these have `limit` bytes. Returns `None` at the end of the journal.
    fn read(
        link: &Link<'_>,
        (_, session): Member,
        from: Position,
        value: &SensitiveValue,
        copies: &ObjectCopies,
        limit: u64,
    ) -> Result<Option<Self>, Failure> {
        let mut page = Self { texts: BTreeMap::new(), replacements: 0, kept: Vec::new(), next: from };
        let mut bytes = 0;
        texts(link, session, from, PAGE, |position, text| {
            if bytes >= limit {
                return Ok(());
            }
            page.next = position.next();
            decode(session, position, text)?;
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
    fn write(&self, link: &Link<'_>, member: Member, at: Timestamp) -> Result<(), Failure> {
        for (position, text) in &self.texts {
            let sql = "UPDATE {schema}.records SET record = $3, replaced = $4, replaced_at = $5 WHERE session = $1 AND position = $2";
            let checksum = Checksum::alone(text.as_bytes());
            let values = parameters![
                member.0 => INT8, position.number().cast_signed() => INT8, *text => TEXT,
                checksum.as_bytes() => BYTEA, at.to_string() => TEXT
            ];
            link.query(sql, values)?;
        }
        let redacted = RecordsRedacted {
            positions: self.texts.keys().copied().collect(),
            replacements: self.replacements,
            ..RecordsRedacted::default()
        };
        append(link, member, redacted, at)
    }

    fn report(&self, (_, session): Member, one: &mut RedactedSession, report: &mut RedactionReport) {
        one.positions.extend(self.texts.keys());
        one.replacements += self.replacements;
        report.kept.extend(self.kept.iter().map(|position| Point { session, position: *position }));
    }
}

/// Inbox items of a session that hold the value, by id, with their new data.
fn changed_items(
    link: &Link<'_>,
    (number, _): Member,
    value: &SensitiveValue,
) -> Result<BTreeMap<i64, String>, Failure> {
    let rows =
        link.query("SELECT id, data FROM {schema}.inbox WHERE session = $1", parameters![number => INT8])?;
    let mut changed = BTreeMap::new();
    for row in &rows {
        let redacted = redact_inbox_data(get(row, 1)?, value).filter(|redacted| redacted.replacements > 0);
        if let Some(redacted) = redacted {
            changed.insert(get(row, 0)?, redacted.text);
        }
    }
    Ok(changed)
}
