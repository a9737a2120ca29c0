//! Expiry: which sessions are old enough to be removed.
//!
//! The index decides: a session expires by the time of its last record and by its status. A session stays if a
//! process holds it or a sub-agent of it, if a sub-agent has not ended, or if it was forked and a fork stays.
//! Sub-agents go with their parents, and sessions that are not indexed stay.

use std::time::Duration;

use backstitch_core::id::SessionId;
use backstitch_core::journal::Position;
use backstitch_core::ports::{IndexedSession, IndexedStatus, SessionQuery, StoreError, TimeRange};
use backstitch_core::time::Timestamp;
use rusqlite::Connection;

use super::contents::SqliteContents;
use super::error::Failure;
use super::{SqliteStore, leases, query, read};
use crate::family::is_open;
use crate::redaction::Contents as _;

/// Statuses that expire by default: there is nothing left to do.
const FINISHED: [IndexedStatus; 2] = [IndexedStatus::Idle, IndexedStatus::Failed];

/// Rule for the expiry of sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expiry {
    before: Timestamp,
    statuses: Vec<IndexedStatus>,
}

impl Expiry {
    /// Sessions without a record in the last `days` days, if they are idle or have failed.
    pub fn after_days(days: u32) -> Self {
        let days = Duration::from_secs(u64::from(days) * 24 * 60 * 60);
        let before = super::now().since(Timestamp::UNIX_EPOCH).saturating_sub(days);
        Self::before(Timestamp::UNIX_EPOCH.saturating_add(before))
    }

    /// Sessions without a record at or after a time, if they are idle or have failed.
    pub fn before(before: Timestamp) -> Self {
        Self { before, statuses: FINISHED.to_vec() }
    }

    /// Selects sessions of these statuses instead. One that a process holds never expires.
    #[must_use]
    pub fn with_statuses(self, statuses: impl IntoIterator<Item = IndexedStatus>) -> Self {
        Self { statuses: statuses.into_iter().collect(), ..self }
    }
}

impl SqliteStore {
    /// Lists the sessions that a rule lets expire, in the order of their creation. They can be removed
    /// together; their sub-agents are not listed.
    pub fn expired(&self, expiry: &Expiry) -> Result<Vec<SessionId>, StoreError> {
        self.readers.at_once(|connection| {
            let mut wanted = SessionQuery::roots()
                .with_updated(TimeRange { since: None, until: Some(expiry.before) })
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
        if leases::holder(&self.locks, connection, session)?.is_some() {
            return Ok(true);
        }
        Ok(is_open(&read::read(connection, session, Position::START, usize::MAX)?))
    }
}
