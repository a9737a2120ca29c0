//! Expiry: which sessions are old enough to be removed.
//!
//! The index decides: a session expires by the time of its last record and by its status. A session stays if a
//! process holds it or a sub-agent of it, if a sub-agent has not ended, or if it was forked and a fork stays.
//! Sub-agents go with their parents, and sessions that are not indexed stay.

use backstitch_core::id::SessionId;
use backstitch_core::journal::Position;
use backstitch_core::ports::{Expiry, IndexedSession, SessionQuery, StoreError, TimeRange};
use rusqlite::Connection;

use super::contents::SqliteContents;
use super::error::Failure;
use super::store::SqliteStore;
use super::{claims, query, read};
use crate::family::is_open;
use crate::redaction::Contents as _;

impl SqliteStore {
    /// Lists the sessions that a rule lets expire, in the order of their creation. They can be removed
    /// together; their sub-agents are not listed.
    pub fn expired(&self, expiry: &Expiry) -> Result<Vec<SessionId>, StoreError> {
        let Some(before) = expiry.before else { return Ok(Vec::new()) };
        self.readers.at_once(|connection| {
            let mut wanted = SessionQuery::roots()
                .with_updated(TimeRange { since: None, until: Some(before) })
                .with_limit(usize::MAX);
            wanted.statuses.clone_from(&expiry.statuses);
            let found = query::page(&self.locks, connection, &wanted)?.sessions;
            let free = found.iter().filter(|one| one.holder.is_none());
            let old = free.map(IndexedSession::id).collect();
            let busy = |session| Ok(self.is_busy(connection, session)?);
            Ok(SqliteContents(connection).origins()?.expirable(old, busy)?)
        })
    }

    /// Returns whether a sub-agent is held or has not ended.
    fn is_busy(&self, connection: &Connection, session: SessionId) -> Result<bool, Failure> {
        if claims::holder(&self.locks, connection, session)?.is_some() {
            return Ok(true);
        }
        Ok(is_open(&read::read(connection, session, Position::START, usize::MAX)?))
    }
}
