//! The sessions that are moved together, and the objects that they name.
//!
//! | session | records |
//! |---|---|
//! | the named session | all |
//! | the sessions that it was forked from, directly or indirectly | those before the fork |
//! | sub-agents of all of these, recursively | all |
//!
//! Sub-agents of calls that had not ended before a fork belong to the parent's later history, and are left
//! out. A parent that is resumed elsewhere creates them again.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use backstitch_core::id::{CallId, SessionId};
use backstitch_core::journal::{Origin, Position, RecordBody};
use backstitch_core::object::ObjectId;
use backstitch_core::ports::{BundleError, SessionRole, StoreError};
use rusqlite::Connection;

use super::error::invalid;
use crate::references::References;
use crate::sqlite::inbox;
use crate::sqlite::keys::{end_of, number_of};
use crate::sqlite::read::{decode, existing, read_numbered, texts};

/// A session of a selection.
#[derive(Debug, Clone)]
pub(super) struct SelectedSession {
    pub(super) session: SessionId,
    /// Number of the session in its store.
    pub(super) number: i64,
    pub(super) role: SessionRole,
    /// Number of records to move.
    pub(super) records: u64,
    /// Size of their texts in bytes.
    pub(super) bytes: u64,
    pub(super) origin: Origin,
}

/// Objects that the records and inboxes of a selection name.
#[derive(Debug, Default)]
pub(super) struct NamedObjects {
    /// Trees and manifests of workspace roots.
    pub(super) roots: BTreeSet<(ObjectId, ObjectId)>,
    /// Objects that a record cannot be read without, each with the first such record.
    pub(super) needed: BTreeMap<ObjectId, (SessionId, Position)>,
    /// Every other string that is an object id. Some may name no object.
    pub(super) mentioned: BTreeSet<ObjectId>,
}

impl NamedObjects {
    fn add(&mut self, named: References) {
        self.roots.extend(named.roots.iter().map(|root| (root.tree, root.manifest)));
        self.mentioned.extend(named.objects);
    }
}

/// Everything that is moved with a session.
#[derive(Debug)]
pub(super) struct Selection {
    pub(super) main: SessionId,
    /// Ancestors first, the eldest before the others; then sub-agents, each before its parent; the main
    /// session last.
    pub(super) sessions: Vec<SelectedSession>,
    pub(super) named: NamedObjects,
}

impl Selection {
    /// Selects everything that is moved with a session. The caller has begun a transaction.
    pub(super) fn of(connection: &Connection, main: SessionId) -> Result<Self, BundleError> {
        let line = line_of(connection, main)?;
        let mut known: HashSet<SessionId> = line.iter().map(|one| one.session).collect();
        let mut named = NamedObjects::default();
        let (mut ancestors, mut below, mut open) = (Vec::new(), Vec::new(), Vec::new());
        for mut one in line.into_iter().rev() {
            open.extend(scan(connection, &mut one, &mut named)?);
            ancestors.push(one);
        }
        while let Some((parent, child)) = open.pop() {
            let Some(number) = number_of(connection, &child.to_string())? else { continue };
            let origin = origin_of(connection, child, number)?;
            let is_child = matches!(origin, Origin::Call { session, .. } if session == parent);
            if !is_child || !known.insert(child) {
                continue;
            }
            let records = end_of(connection, child, number)?.0.number();
            let role = SessionRole::SubAgent;
            let mut one = SelectedSession { session: child, number, role, records, bytes: 0, origin };
            open.extend(scan(connection, &mut one, &mut named)?);
            below.push(one);
        }
        let last = ancestors.pop();
        let sessions = ancestors.into_iter().chain(below.into_iter().rev()).chain(last).collect();
        Ok(Self { main, sessions, named })
    }

    pub(super) fn records(&self) -> u64 {
        self.sessions.iter().map(|one| one.records).sum()
    }
}

/// The session and those that it was forked from, the eldest last.
fn line_of(connection: &Connection, main: SessionId) -> Result<Vec<SelectedSession>, BundleError> {
    let mut line: Vec<SelectedSession> = Vec::new();
    let mut next = Some((main, None));
    while let Some((session, cut)) = next {
        if line.iter().any(|one| one.session == session) {
            return Err(invalid(format!("session {session} is a fork of itself")));
        }
        let number = existing(connection, session)?;
        let head = end_of(connection, session, number)?.0;
        let origin = origin_of(connection, session, number)?;
        let records = match cut {
            None => head,
            Some(cut) if Position::START < cut && cut <= head => cut,
            Some(cut) => {
                let reason = format!(
                    "a session was forked from session {session} at position {cut}, but that has {head} records"
                );
                return Err(invalid(reason));
            }
        };
        next = match origin {
            Origin::Fork { session, position } => Some((session, Some(position))),
            Origin::Call { session: parent, .. } if line.is_empty() => {
                return Err(BundleError::SubAgent { session, parent });
            }
            Origin::Root | Origin::Call { .. } => None,
        };
        let role = if line.is_empty() { SessionRole::Main } else { SessionRole::Ancestor };
        let records = records.number();
        line.push(SelectedSession { session, number, role, records, bytes: 0, origin });
    }
    Ok(line)
}

/// Reads the origin of a session from its first record.
fn origin_of(connection: &Connection, session: SessionId, number: i64) -> Result<Origin, BundleError> {
    match read_numbered(connection, session, number, Position::START, 1)?.pop().map(|first| first.body) {
        Some(RecordBody::SessionCreated(created)) if created.session_id == session => {
            Ok(created.origin.clone())
        }
        _ => Err(StoreError::Beginning { session }.into()),
    }
}

/// Reads the moved records of a session. Collects the objects that they name, and returns the sub-agents of
/// its calls, each with its parent.
fn scan(
    connection: &Connection,
    one: &mut SelectedSession,
    named: &mut NamedObjects,
) -> Result<Vec<(SessionId, SessionId)>, BundleError> {
    let session = one.session;
    let mut children: Vec<(CallId, SessionId)> = Vec::new();
    let mut ended: HashSet<CallId> = HashSet::new();
    let mut bytes = 0;
    let most = usize::try_from(one.records).unwrap_or(usize::MAX);
    texts(connection, session, one.number, Position::START, most, |position, text| {
        let record = decode(session, position, text)?;
        bytes += text.len() as u64;
        for id in record.body.object_refs() {
            named.needed.entry(id).or_insert((session, position));
        }
        named.add(References::in_text(text));
        match &record.body {
            RecordBody::SessionCreated(_) if position != Position::START => {
                return Err(StoreError::Beginning { session }.into());
            }
            RecordBody::CallStarted(call) => {
                children.extend(call.session.map(|child| (call.call_id, child)));
            }
            RecordBody::CallFinished(call) => drop(ended.insert(call.call_id)),
            _ => {}
        }
        Ok(())
    })?;
    one.bytes = bytes;
    if one.role == SessionRole::Ancestor {
        children.retain(|(call, _)| ended.contains(call));
    } else {
        for (_, item) in inbox::list(connection, session)? {
            named.add(References::in_text(&item.data.to_string()));
        }
    }
    Ok(children.into_iter().map(|(_, child)| (session, child)).collect())
}
