//! Lists of sessions, by the index of the store. No journal is read, but for sessions that are not indexed.

use backstitch_runtime::{IndexProgress, RuntimeError};

use crate::id::SessionId;
use crate::ports::{IndexedSession, OriginKind, SessionOrder, SessionPage, SessionQuery};
use crate::report::{ListOptions, ListedSession, SessionList, UnreadableEntry, Version};
use crate::runtime::Runtime;
use crate::tool::with_causes;

/// The index of a store, and which sessions it lacks.
pub struct SessionIndex {
    runtime: Runtime,
    /// Sessions that are not indexed. Looking for them takes longer than a page, so it is done once.
    missing: Vec<SessionId>,
}

impl Runtime {
    /// Looks for sessions that are not indexed.
    pub async fn session_index(&self) -> Result<SessionIndex, RuntimeError> {
        let missing = self.store.store.unindexed(usize::MAX).await?;
        Ok(SessionIndex { runtime: self.clone(), missing })
    }

    /// Lists sessions. Those that are not indexed are indexed, where the store can be written.
    pub async fn session_list(&self, options: ListOptions) -> Result<SessionList, RuntimeError> {
        let mut index = self.session_index().await?;
        // What cannot be written can still be listed.
        let _ = index.fill(|_| {}).await;
        index.list(options).await
    }
}

impl SessionIndex {
    /// Whether all sessions are indexed.
    pub fn is_complete(&self) -> bool {
        self.missing.is_empty()
    }

    /// Indexes the sessions that are not indexed, except those that cannot be read. It may be dropped or killed at any time, and
    /// the next call continues.
    pub async fn fill(&mut self, progress: impl FnMut(IndexProgress)) -> Result<(), RuntimeError> {
        if !self.is_complete() {
            self.runtime.index(progress).await?;
            *self = self.runtime.session_index().await?;
        }
        Ok(())
    }

    /// Lists sessions.
    pub async fn list(&self, options: ListOptions) -> Result<SessionList, RuntimeError> {
        let ListOptions { query, limit, with_sub_agents, with_unreadable } = options;
        let unreadable = if with_unreadable { self.unreadable().await } else { Vec::new() };
        let (mut sessions, left_out) = self.newest(SessionQuery { after: None, ..query }, limit).await?;
        if with_sub_agents {
            self.add_sub_agents(&mut sessions).await?;
        }
        let sessions = sessions.into_iter().map(ListedSession::from).collect();
        Ok(SessionList { unreadable, sessions, left_out })
    }

    /// The newest sessions that a query selects, oldest first, and how many older ones it selects.
    async fn newest(
        &self,
        query: SessionQuery,
        limit: Option<usize>,
    ) -> Result<(Vec<IndexedSession>, u64), RuntimeError> {
        let Some(limit) = limit else {
            return Ok((self.all(query.with_order(SessionOrder::OldestFirst)).await?, 0));
        };
        let mut query = query.with_order(SessionOrder::NewestFirst).with_limit(limit);
        let SessionPage { mut sessions, next } = self.page(query.clone()).await?;
        sessions.reverse();
        query.after = next;
        let left_out = if query.after.is_some() { self.count(query).await? } else { 0 };
        Ok((sessions, left_out))
    }

    /// Adds the sessions of sub-agents, and of theirs.
    async fn add_sub_agents(&self, sessions: &mut Vec<IndexedSession>) -> Result<(), RuntimeError> {
        let mut parents: Vec<SessionId> = sessions.iter().map(IndexedSession::id).collect();
        while !parents.is_empty() {
            let query =
                SessionQuery::new().with_origin(OriginKind::Call).with_order(SessionOrder::OldestFirst);
            let found = self.all(SessionQuery { parents, ..query }).await?;
            parents = found.iter().map(IndexedSession::id).collect();
            sessions.extend(found);
        }
        Ok(())
    }

    async fn all(&self, query: SessionQuery) -> Result<Vec<IndexedSession>, RuntimeError> {
        Ok(self.page(query.with_limit(usize::MAX)).await?.sessions)
    }

    pub(super) async fn page(&self, query: SessionQuery) -> Result<SessionPage, RuntimeError> {
        if self.is_complete() {
            return self.runtime.store.store.query(query).await.map_err(RuntimeError::Store);
        }
        self.runtime.sessions(query).await
    }

    /// The number of sessions that a query selects from its cursor on.
    async fn count(&self, query: SessionQuery) -> Result<u64, RuntimeError> {
        if self.is_complete() {
            return self.runtime.store.store.count(query).await.map_err(RuntimeError::Store);
        }
        self.runtime.count_sessions(query).await
    }

    pub(super) async fn unreadable(&self) -> Vec<UnreadableEntry> {
        let mut unreadable = Vec::new();
        for session in &self.missing {
            if let Err(error) = self.runtime.view(*session).await {
                unreadable.push(UnreadableEntry {
                    v: Version,
                    session: *session,
                    error: with_causes(&error),
                });
            }
        }
        unreadable
    }
}
