//! Listing sessions by the index, and bringing the index up to date.
//!
//! Every batch of a live session carries its summary, so the index of a store is current by itself. It is not after a migration
//! from a version without one, and for sessions whose batches came without summaries. Those are folded once
//! ([`Runtime::index`]): each summary is a write of its own, so an interruption loses nothing, and the next call continues.

use std::collections::{HashMap, HashSet};
use std::sync::PoisonError;

use backstitch_core::id::SessionId;
use backstitch_core::journal::{Position, SessionSummary, StopReason};
use backstitch_core::ports::{
    IndexedSession, IndexedStatus, QueueQuery, QueueState, SessionCursor, SessionOrder, SessionPage,
    SessionQuery, StoreError,
};
use futures_util::future::join_all;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::{Result, RuntimeError};
use crate::live::{fold_view, load_view};
use crate::runtime::Runtime;

/// How many summaries are written together.
const GROUP: usize = 32;

/// How far indexing is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexProgress {
    /// Sessions that are done.
    pub done: usize,
    /// Sessions that were not indexed at the start.
    pub total: usize,
}

/// What indexing has done.
#[derive(Debug, Default)]
pub struct IndexReport {
    /// How many sessions were summarized.
    pub indexed: usize,
    /// Sessions that could not be read, and so are not indexed.
    pub unreadable: Vec<UnreadableSession>,
}

/// A session that could not be read.
#[derive(Debug)]
pub struct UnreadableSession {
    /// The session.
    pub session: SessionId,
    /// Why not.
    pub error: RuntimeError,
}

impl Runtime {
    /// A page of the sessions that a query selects. No journal is read: the store keeps summaries. Sessions that are not indexed
    /// yet are, once ([`Runtime::index`]); those that cannot be read are left out. In a store that cannot be written, they are
    /// folded each time.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use backstitch_core::ports::{IndexedStatus, SessionQuery};
    /// use backstitch_runtime::Runtime;
    /// use backstitch_store::MemoryStore;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let runtime = Runtime::new(Arc::new(MemoryStore::new()));
    /// let failed = SessionQuery::new().with_status(IndexedStatus::Failed).with_tag("team", "a");
    /// for session in runtime.sessions(failed).await?.sessions {
    ///     println!("{}: {:?}", session.summary.session, session.summary.failure);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn sessions(&self, query: SessionQuery) -> Result<SessionPage> {
        let missing = self.missing().await?;
        if missing.is_empty() {
            return Ok(self.store().query(query).await?);
        }
        match self.index_these(&missing, |_| {}).await {
            Err(RuntimeError::Store(
                StoreError::ReadOnly { .. } | StoreError::Full { .. } | StoreError::Busy { .. },
            )) => self.fold_page(query, &missing).await,
            Err(error) => Err(error),
            Ok(_) => Ok(self.store().query(query).await?),
        }
    }

    /// The number of sessions that a query selects from its cursor on, on all pages.
    pub async fn count_sessions(&self, query: SessionQuery) -> Result<u64> {
        let all = SessionQuery { limit: usize::MAX, ..query.clone() };
        match self.missing().await?.is_empty() {
            true => Ok(self.store().count(query).await?),
            false => Ok(self.sessions(all).await?.sessions.len() as u64),
        }
    }

    /// The sessions that have not answered and that no process drives: after a crash, those to resume. Those of sub-agents are
    /// left out: resuming their parents resumes them.
    pub async fn interrupted_sessions(&self) -> Result<Vec<SessionId>> {
        self.roots_with([IndexedStatus::Interrupted, IndexedStatus::Stopped]).await
    }

    /// The sessions that a process should resume when it starts: those that are [interrupted](Self::interrupted_sessions), and those that
    /// [`Runtime::shutdown`](crate::Runtime::shutdown) has paused. Pauses that wait for a decision are left out, and so are sessions
    /// that [workers](crate::Worker) drive.
    pub async fn recoverable(&self) -> Result<Vec<SessionId>> {
        let mut sessions = self.interrupted_sessions().await?;
        for session in self.roots_with([IndexedStatus::Paused]).await? {
            let stopped = self.view(session).await?.stopped().map(|stopped| stopped.reason);
            if stopped == Some(StopReason::Shutdown) {
                sessions.push(session);
            }
        }
        let queued = self.queued_sessions().await?;
        sessions.retain(|session| !queued.contains(session));
        Ok(sessions)
    }

    /// The sessions that workers drive, now or later: those of the queue that were not given up.
    pub async fn queued_sessions(&self) -> Result<HashSet<SessionId>> {
        let Ok(queue) = self.queue() else { return Ok(HashSet::new()) };
        let mut query = QueueQuery { limit: 1_000, ..QueueQuery::default() };
        let mut sessions = HashSet::new();
        loop {
            let page = queue.queued(query.clone()).await?;
            let driven = page.sessions.iter().filter(|one| one.state != QueueState::Failed);
            sessions.extend(driven.map(|one| one.session));
            match page.next {
                Some(next) => query.after = Some(next),
                None => return Ok(sessions),
            }
        }
    }

    async fn roots_with(&self, statuses: impl IntoIterator<Item = IndexedStatus>) -> Result<Vec<SessionId>> {
        let query = SessionQuery::roots().with_order(SessionOrder::OldestFirst).with_limit(1_000);
        let mut query = statuses.into_iter().fold(query, SessionQuery::with_status);
        let mut sessions = Vec::new();
        loop {
            let page = self.sessions(query.clone()).await?;
            sessions.extend(page.sessions.iter().map(IndexedSession::id));
            match page.next {
                Some(next) => query.after = Some(next),
                None => return Ok(sessions),
            }
        }
    }

    /// Summarizes the sessions that are not indexed, one after the other, and reports progress. It may be dropped or killed at any
    /// time: what was written stays, and the next call continues. Sessions that cannot be read are skipped.
    pub async fn index(&self, progress: impl FnMut(IndexProgress)) -> Result<IndexReport> {
        let missing = self.store().unindexed(usize::MAX).await?;
        self.index_these(&missing, progress).await
    }

    /// Sessions without a current summary, but for those that could not be read before.
    async fn missing(&self) -> Result<Vec<SessionId>> {
        let mut missing = self.store().unindexed(usize::MAX).await?;
        let unreadable = self.registry.unreadable.lock().unwrap_or_else(PoisonError::into_inner);
        missing.retain(|session| !unreadable.contains(session));
        Ok(missing)
    }

    async fn index_these(
        &self,
        missing: &[SessionId],
        mut progress: impl FnMut(IndexProgress),
    ) -> Result<IndexReport> {
        let (mut report, mut done) = (IndexReport::default(), 0);
        for group in missing.chunks(GROUP) {
            let mut summaries = Vec::new();
            for session in group {
                match self.summarize(*session).await {
                    Ok(summary) => summaries.push(summary),
                    Err(error) => report.unreadable.push(UnreadableSession { session: *session, error }),
                }
            }
            // Each is a write of its own; a store may commit them together.
            for written in join_all(summaries.into_iter().map(|one| self.store().put_summary(one))).await {
                match written {
                    Ok(written) => report.indexed += usize::from(written),
                    // Removed since then.
                    Err(StoreError::NotFound { .. }) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            done += group.len();
            progress(IndexProgress { done, total: missing.len() });
        }
        let unreadable = report.unreadable.iter().map(|one| one.session);
        self.registry.unreadable.lock().unwrap_or_else(PoisonError::into_inner).extend(unreadable);
        Ok(report)
    }

    async fn summarize(&self, session: SessionId) -> Result<SessionSummary> {
        Ok(load_view(&**self.store(), session, None).await?.summary())
    }

    /// A page of a store that cannot be written, with the sessions that it has not indexed. Its cursor is the number of sessions
    /// before the next one, in the order of creation.
    async fn fold_page(&self, query: SessionQuery, missing: &[SessionId]) -> Result<SessionPage> {
        let all = SessionQuery { after: None, limit: usize::MAX, ..query.clone() };
        let page = self.store().query(all).await?;
        let mut found: HashMap<SessionId, IndexedSession> =
            page.sessions.into_iter().map(|one| (one.summary.session, one)).collect();
        for session in missing {
            let Ok(summary) = self.summarize(*session).await else { continue };
            let holder = self.store().holder(*session).await?;
            let has_waiting = !self.store().inbox(*session).await?.is_empty();
            found.insert(*session, IndexedSession { summary, holder, has_waiting });
        }
        let created = self.store().sessions().await?;
        let cursor = query.after.as_ref().map(|cursor| {
            let unknown = |_| StoreError::UnknownCursor { cursor: cursor.as_str().to_owned() };
            cursor.as_str().parse::<usize>().map_err(unknown)
        });
        let cursor = cursor.transpose()?;
        let numbered: Vec<(usize, SessionId)> = match query.order {
            SessionOrder::OldestFirst => created.into_iter().enumerate().skip(cursor.unwrap_or(0)).collect(),
            SessionOrder::NewestFirst => {
                let until = cursor.unwrap_or(usize::MAX);
                created.into_iter().enumerate().take(until).rev().collect()
            }
        };
        let mut page = SessionPage::default();
        for (number, session) in numbered {
            let Some(one) = found.remove(&session).filter(|one| query.accepts(one)) else { continue };
            if page.sessions.len() == query.limit.max(1) {
                let next = match query.order {
                    SessionOrder::OldestFirst => number,
                    SessionOrder::NewestFirst => number + 1,
                };
                page.next = Some(SessionCursor::new(next.to_string()));
                break;
            }
            page.sessions.push(one);
        }
        Ok(page)
    }
}

/// Whether differences between summaries and journals are repaired.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexRepair {
    /// They are only reported.
    Report,
    /// Summaries that differ or are missing are written again.
    Rebuild,
}

/// What comparing the index with the journals has found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IndexCheck {
    /// How many summaries were compared.
    pub compared: u64,
    /// Sessions whose summary says something else than their journal.
    pub differing: Vec<SessionId>,
    /// Sessions without a summary.
    pub unindexed: Vec<SessionId>,
    /// Sessions whose journal cannot be folded. A verification reports their damage.
    #[serde(default)]
    pub unreadable: Vec<SessionId>,
    /// How many summaries were written.
    pub rebuilt: u64,
}

impl Runtime {
    /// Folds every journal and compares it with the summary in the index.
    pub async fn check_index(
        &self,
        repair: IndexRepair,
        mut progress: impl FnMut(IndexProgress),
    ) -> Result<IndexCheck> {
        let sessions = self.store().sessions().await?;
        let total = sessions.len();
        let mut check = IndexCheck::default();
        for (index, session) in sessions.into_iter().enumerate() {
            let (stored, expected) = match self.compare_summaries(session).await {
                Ok(compared) => compared,
                Err(RuntimeError::SessionNotFound { .. }) => continue,
                Err(_) => {
                    check.unreadable.push(session);
                    continue;
                }
            };
            match stored {
                StoredSummary::Missing => check.unindexed.push(session),
                StoredSummary::Damaged => check.differing.push(session),
                StoredSummary::Found(stored) => {
                    check.compared += 1;
                    if *stored == expected {
                        progress(IndexProgress { done: index + 1, total });
                        continue;
                    }
                    check.differing.push(session);
                }
            }
            if repair == IndexRepair::Rebuild {
                let written = self.store().put_summary(expected).await?;
                check.rebuilt += u64::from(written);
            }
            progress(IndexProgress { done: index + 1, total });
        }
        Ok(check)
    }

    /// The summary in the index, and the one that the journal gives. A session that is written meanwhile is read again.
    async fn compare_summaries(&self, session: SessionId) -> Result<(StoredSummary, SessionSummary)> {
        let mut before: Option<Position> = None;
        loop {
            // Snapshots are caches too, so all records are folded.
            let expected = fold_view(&**self.store(), session, None).await?.summary();
            let stored = match self.store().summary(session).await {
                Ok(Some(stored)) => StoredSummary::Found(Box::new(stored)),
                Ok(None) => StoredSummary::Missing,
                Err(StoreError::DamagedSummary { .. }) => StoredSummary::Damaged,
                Err(StoreError::NotFound { session }) => {
                    return Err(RuntimeError::SessionNotFound { session });
                }
                Err(error) => return Err(error.into()),
            };
            let is_later =
                matches!(&stored, StoredSummary::Found(stored) if stored.position > expected.position);
            if !is_later || before == Some(expected.position) {
                return Ok((stored, expected));
            }
            before = Some(expected.position);
        }
    }
}

/// The summary of a session in the index.
enum StoredSummary {
    Found(Box<SessionSummary>),
    Missing,
    Damaged,
}
