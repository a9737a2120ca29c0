//! Expiry: which sessions are old enough to be removed.
//!
//! The index decides: a session expires by the time of its last record and by its status. A session stays if a
//! process holds it or a sub-agent of it, if a sub-agent has not ended, or if it was forked and a fork stays.
//! Sub-agents go with their parents, and sessions that are not indexed stay.

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
    /// `None` if nothing expires.
    before: Option<Timestamp>,
    statuses: Vec<IndexedStatus>,
}

impl Expiry {
    /// Sessions without a record in the last `days` days, if they are idle or have failed.
    pub fn after_days(days: u32) -> Self {
        Self::before_days(super::now(), days)
    }

    fn before_days(now: Timestamp, days: u32) -> Self {
        // Before the first time there is nothing to expire.
        let before = super::days_before(now, days);
        Self { before, statuses: FINISHED.to_vec() }
    }

    /// Sessions without a record at or after a time, if they are idle or have failed.
    pub fn before(before: Timestamp) -> Self {
        Self { before: Some(before), statuses: FINISHED.to_vec() }
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
        if leases::holder(&self.locks, connection, session)?.is_some() {
            return Ok(true);
        }
        Ok(is_open(&read::read(connection, session, Position::START, usize::MAX)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_counted_before_1970_too() {
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let expiry = Expiry::before_days(at("1960-03-02T00:00:00Z"), 30);
        assert_eq!(expiry.before, Some(at("1960-02-01T00:00:00Z")));
        let expiry = Expiry::before_days(at("1970-01-02T00:00:00Z"), 30);
        assert_eq!(expiry.before, Some(at("1969-12-03T00:00:00Z")));
        assert_eq!(
            Expiry::before_days(Timestamp::UNIX_EPOCH, u32::MAX).before,
            None,
            "there is no such time"
        );
        let early = std::time::UNIX_EPOCH - std::time::Duration::from_secs(60);
        assert_eq!(super::super::timestamp_of(early), at("1969-12-31T23:59:00Z"));
    }
}
