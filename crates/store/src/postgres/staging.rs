//! Sessions that are copied from the server to a stage, from which a bundle or a new store in a file is written.

use std::collections::{BTreeSet, HashSet};
use std::path::Path;

use backstitch_core::id::SessionId;
use backstitch_core::journal::{Origin, Position, Record, RecordBody};
use backstitch_core::object::ObjectId;
use backstitch_core::ports::{
    BundleError, Damage, LostTail, OpenError, SalvageReport, SalvagedSession, StoreError,
};

use super::contents::PostgresContents;
use super::error::{Failure, chain_of};
use super::inbox;
use super::link::Link;
use super::objects::get_object;
use super::records::{existing, numbered_sessions, texts};
use super::schema::get;
use super::server::parameters;
use crate::chain::Checksum;
use crate::packed::{CompressedObject, Packer, Presence};
use crate::reach::StoredObjects as _;
use crate::redaction::Contents as _;
use crate::references::{References, below, named_in_manifest};
use crate::sqlite::{Stage, StagedRecord};

/// Objects that staged texts name.
#[derive(Default)]
struct NamedObjects {
    plain: BTreeSet<ObjectId>,
    manifests: BTreeSet<ObjectId>,
}

impl NamedObjects {
    fn add(&mut self, text: &str) {
        let named = References::in_text(text);
        self.plain.extend(named.objects);
        self.plain.extend(named.roots.iter().map(|root| root.tree));
        self.manifests.extend(named.roots.iter().map(|root| root.manifest));
    }
}

/// Copies a session, with everything that it may depend on, to a stage.
pub(super) fn stage(link: &Link<'_>, packer: &Packer, session: SessionId) -> Result<Stage, BundleError> {
    existing(link, session).map_err(StoreError::from)?;
    let wanted = related(link, session)?;
    let stage = Stage::new()?;
    let mut named = NamedObjects::default();
    for (_, one) in numbered_sessions(link).map_err(StoreError::from)? {
        if wanted.contains(&one) {
            copy_session(link, &stage, one, &mut named).map_err(StoreError::from)?;
        }
    }
    copy_objects(link, &stage, packer, named).map_err(StoreError::from)?;
    Ok(stage)
}

/// A session, those that it was forked from, and the sub-agents of all of them.
fn related(link: &Link<'_>, session: SessionId) -> Result<HashSet<SessionId>, StoreError> {
    let origins = PostgresContents::new(link).origins()?;
    let mut wanted = HashSet::from([session]);
    loop {
        let before = wanted.len();
        for (one, origin) in &origins.0 {
            match origin {
                Origin::Fork { session: parent, .. } if wanted.contains(one) => drop(wanted.insert(*parent)),
                Origin::Call { session: parent, .. } if wanted.contains(parent) => drop(wanted.insert(*one)),
                _ => {}
            }
        }
        if wanted.len() == before {
            return Ok(wanted);
        }
    }
}

/// Times of redactions of a session, by position.
fn replaced(link: &Link<'_>, session: SessionId) -> Result<Vec<(Position, String)>, Failure> {
    let sql = "SELECT r.position, r.replaced_at FROM {schema}.records r JOIN {schema}.sessions s ON s.id = r.session
        WHERE s.session = $1 AND r.replaced IS NOT NULL ORDER BY r.position";
    let rows = link.query(sql, parameters![*session.as_uuid() => UUID])?;
    let times = rows.iter().map(|row| {
        let at: Option<String> = get(row, 1)?;
        Ok((Position::new(get::<i64>(row, 0)?.cast_unsigned()), at.unwrap_or_default()))
    });
    times.collect()
}

/// Copies the records and the inbox of a session.
fn copy_session(
    link: &Link<'_>,
    stage: &Stage,
    session: SessionId,
    named: &mut NamedObjects,
) -> Result<(), Failure> {
    let times = replaced(link, session)?;
    let mut staged = stage.session(session)?;
    let mut chain = ChainOf::new(link, session)?;
    texts(link, session, Position::START, usize::MAX, |position, text| {
        named.add(text);
        let at = times.iter().find(|(one, _)| *one == position).map(|(_, at)| at.as_str());
        let checksum = chain.next(position, text, at.is_some())?;
        Ok(staged.record(&StagedRecord { position, text, checksum, replaced_at: at })?)
    })?;
    let items: Vec<_> = inbox::list_with(link, session)?.into_iter().map(|(_, item)| item).collect();
    items.iter().for_each(|item| named.add(&item.data.to_string()));
    Ok(staged.finish(&items)?)
}

/// Checksums of the records of a session: those of redacted ones do not follow from their texts.
struct ChainOf<'a> {
    link: &'a Link<'a>,
    session: SessionId,
    before: Checksum,
}

impl<'a> ChainOf<'a> {
    fn new(link: &'a Link<'a>, session: SessionId) -> Result<Self, Failure> {
        Ok(Self { link, session, before: Checksum::start(session) })
    }

    fn next(&mut self, position: Position, text: &str, is_replaced: bool) -> Result<Checksum, Failure> {
        self.before = match is_replaced {
            false => self.before.next(text.as_bytes()),
            true => {
                let sql =
                    "SELECT r.checksum FROM {schema}.records r JOIN {schema}.sessions s ON s.id = r.session
                    WHERE s.session = $1 AND r.position = $2";
                let values =
                    parameters![*self.session.as_uuid() => UUID, position.number().cast_signed() => INT8];
                let rows = self.link.query(sql, values)?;
                let stored =
                    rows.first().map(|row| get::<&[u8]>(row, 0)).transpose()?.and_then(Checksum::stored);
                let (session, damage) = (self.session, Damage::Checksum);
                stored.ok_or(StoreError::Damaged { session, position, damage })?
            }
        };
        Ok(self.before)
    }
}

/// Copies objects with everything below them, as far as they are stored. What is missing is missing in the stage too.
fn copy_objects(link: &Link<'_>, stage: &Stage, packer: &Packer, named: NamedObjects) -> Result<(), Failure> {
    let contents = PostgresContents::new(link);
    let mut seen = HashSet::new();
    let plain = named.plain.into_iter().filter(|id| !named.manifests.contains(id)).map(|id| (id, false));
    let mut open: Vec<(ObjectId, bool)> = plain.chain(named.manifests.iter().map(|id| (*id, true))).collect();
    while let Some((id, is_manifest)) = open.pop() {
        if !seen.insert(id) {
            continue;
        }
        match contents.presence(id)? {
            Presence::Absent => {}
            Presence::Stored => {
                let Some(object) = get_object(link, id)? else { continue };
                if is_manifest || named.manifests.contains(&id) {
                    let below = named_in_manifest(object.bytes()).unwrap_or_default();
                    open.extend(below.into_iter().map(|id| (id, false)));
                }
                open.extend(below(&object)?.into_iter().map(|id| (id, false)));
                stage.object(&CompressedObject::new(packer, object)?)?;
            }
            mark => stage.mark(id, mark)?,
        }
    }
    Ok(())
}

/// Copies the sound parts of a store to a new one in a file.
pub(super) fn salvage(link: &Link<'_>, packer: &Packer, to: &Path) -> Result<SalvageReport, OpenError> {
    if to.exists() {
        return Err(OpenError::Exists { path: to.to_owned() });
    }
    let stage = Stage::new()?;
    let mut report = SalvageReport::default();
    let mut named = NamedObjects::default();
    let mut needed = BTreeSet::new();
    for (_, session) in numbered_sessions(link)? {
        let saved = salvage_session(link, &stage, session, &mut named, &mut needed, &mut report.notes)?;
        report.sessions.push(saved);
    }
    salvage_objects(link, &stage, packer, named, &needed, &mut report)?;
    stage.save(to)?;
    Ok(report)
}

/// Copies the sound beginning of a journal.
fn salvage_session(
    link: &Link<'_>,
    stage: &Stage,
    session: SessionId,
    named: &mut NamedObjects,
    needed: &mut BTreeSet<ObjectId>,
    notes: &mut Vec<String>,
) -> Result<SalvagedSession, Failure> {
    let (_, head) = existing(link, session)?;
    let times = replaced(link, session)?;
    let mut staged = None;
    let mut chain = ChainOf::new(link, session)?;
    let mut kept = 0_u64;
    let read = texts(link, session, Position::START, usize::MAX, |position, text| {
        let record =
            Record::decode(position, text).map_err(|source| StoreError::BrokenRecord { session, source })?;
        let begins =
            matches!(&record.body, RecordBody::SessionCreated(created) if created.session_id == session);
        if begins != (position == Position::START) {
            return Err(StoreError::Beginning { session }.into());
        }
        let at = times.iter().find(|(one, _)| *one == position).map(|(_, at)| at.as_str());
        let checksum = chain.next(position, text, at.is_some())?;
        let staged = match &mut staged {
            Some(staged) => staged,
            None => staged.insert(stage.session(session)?),
        };
        staged.record(&StagedRecord { position, text, checksum, replaced_at: at })?;
        named.add(text);
        needed.extend(record.body.object_refs());
        kept += 1;
        Ok(())
    });
    let reason = match read {
        Err(failure) if failure.is_outage() => return Err(failure),
        Err(failure) => Some(match failure.into() {
            StoreError::Damaged { damage, .. } => damage.to_string(),
            error => chain_of(&error),
        }),
        Ok(()) if kept < head.number() => Some(Damage::Gap.to_string()),
        Ok(()) => None,
    };
    let lost = reason.map(|reason| LostTail {
        position: Position::new(kept),
        reason,
        records: head.number().saturating_sub(kept),
    });
    if let Some(staged) = staged {
        let items = match inbox::list_with(link, session) {
            Ok(items) => items.into_iter().map(|(_, item)| item).collect(),
            Err(failure) if failure.is_outage() => return Err(failure),
            Err(failure) => {
                notes.push(format!("the inbox of session {session}: {}", chain_of(&failure.into())));
                Vec::new()
            }
        };
        staged.finish(&items)?;
    }
    Ok(SalvagedSession { session, records: kept, lost })
}

/// Copies the sound objects, and marks the others that records need as lost.
fn salvage_objects(
    link: &Link<'_>,
    stage: &Stage,
    packer: &Packer,
    named: NamedObjects,
    needed: &BTreeSet<ObjectId>,
    report: &mut SalvageReport,
) -> Result<(), Failure> {
    let contents = PostgresContents::new(link);
    let mut seen = HashSet::new();
    // Those that only a text names may be no objects at all.
    let roots = named.manifests.iter().chain(needed).map(|id| (*id, true));
    let mut open: Vec<(ObjectId, bool)> = named.plain.iter().map(|id| (*id, false)).chain(roots).collect();
    open.sort_unstable();
    while let Some((id, is_needed)) = open.pop() {
        if !seen.insert(id) {
            continue;
        }
        let found = match contents.presence(id)? {
            Presence::Stored => match get_object(link, id) {
                Err(failure) if failure.is_outage() => return Err(failure),
                found => found.ok().flatten(),
            },
            Presence::Absent => None,
            mark => {
                stage.mark(id, mark)?;
                continue;
            }
        };
        match found {
            Some(object) => {
                let named_there = match named.manifests.contains(&id) {
                    true => named_in_manifest(object.bytes()).unwrap_or_default(),
                    false => below(&object).unwrap_or_default(),
                };
                open.extend(named_there.into_iter().map(|id| (id, true)));
                stage.object(&CompressedObject::new(packer, object)?)?;
                report.objects += 1;
            }
            None if is_needed => {
                stage.mark(id, Presence::Lost)?;
                report.lost_objects.push(id);
            }
            None => {}
        }
    }
    Ok(())
}
