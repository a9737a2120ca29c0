//! Queries over the summaries of sessions.

use std::collections::HashSet;
use std::ops::Bound;

use backstitch_core::id::SessionId;
use backstitch_core::journal::SessionSummary;
use backstitch_core::ports::{
    IndexedSession, SessionCursor, SessionOrder, SessionPage, SessionQuery, StoreError,
};

use super::{Contents, head_of};

impl Contents {
    /// Sessions from a query's cursor on that fulfil it, in its order, each with its number.
    pub(super) fn indexed<'a>(
        &'a self,
        query: &'a SessionQuery,
    ) -> Result<impl Iterator<Item = (u64, IndexedSession)> + 'a, StoreError> {
        let number = |cursor: &SessionCursor| {
            let unknown = |_| StoreError::UnknownCursor { cursor: cursor.as_str().to_owned() };
            cursor.as_str().parse::<u64>().map_err(unknown)
        };
        let after = query.after.as_ref().map(number).transpose()?;
        let (from, until) = match query.order {
            SessionOrder::NewestFirst => (Bound::Unbounded, after.map_or(Bound::Unbounded, Bound::Excluded)),
            SessionOrder::OldestFirst => (after.map_or(Bound::Unbounded, Bound::Excluded), Bound::Unbounded),
        };
        let mut numbered = self.created.range((from, until));
        let in_order = std::iter::from_fn(move || match query.order {
            SessionOrder::NewestFirst => numbered.next_back(),
            SessionOrder::OldestFirst => numbered.next(),
        });
        let waiting: HashSet<SessionId> = self.inbox.values().map(|(session, _)| *session).collect();
        let with_summary = in_order.filter_map(move |(number, session)| {
            let summary = self.summaries.get(session)?.clone();
            let has_waiting = waiting.contains(session);
            Some((*number, IndexedSession { summary, holder: self.holder(*session), has_waiting }))
        });
        Ok(with_summary.filter(|(_, session)| query.accepts(session)))
    }

    pub(super) fn page(&self, query: &SessionQuery) -> Result<SessionPage, StoreError> {
        let limit = query.limit.max(1);
        let mut page = SessionPage::default();
        let mut last = 0;
        for (number, session) in self.indexed(query)? {
            if page.sessions.len() == limit {
                page.next = Some(SessionCursor::new(last.to_string()));
                break;
            }
            last = number;
            page.sessions.push(session);
        }
        Ok(page)
    }

    pub(super) fn put_summary(&mut self, summary: SessionSummary) -> Result<bool, StoreError> {
        let is_current = head_of(self.journal(summary.session)?) == summary.position;
        if is_current {
            self.summaries.insert(summary.session, summary);
        }
        Ok(is_current)
    }

    /// Lists sessions without a summary.
    pub(super) fn unindexed(&self, limit: usize) -> Vec<SessionId> {
        let missing = self.created.values().filter(|session| !self.summaries.contains_key(session));
        missing.take(limit).copied().collect()
    }
}
