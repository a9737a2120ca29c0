//! The index of a store, brought up to date and read.

use backstitch::RuntimeError;
use backstitch::id::SessionId;
use backstitch::ports::{IndexedSession, OpenError, SessionPage, SessionQuery};
use backstitch::stores::{self, StoreAddress};

use super::place::{OpenStore, unopened};
use super::progress::ProgressLines;
use crate::error::message_of;

/// A store, and what of it is not indexed.
pub(crate) struct SessionIndex {
    pub(crate) place: OpenStore,
    /// Sessions that could not be indexed. Looking for them takes longer than a page, so it is done once.
    missing: Vec<SessionId>,
}

impl SessionIndex {
    /// Opens a store. One of an older version is migrated, and sessions that are not indexed are summarized, where the store can
    /// be written; it may be interrupted at any time, and the next command continues.
    pub(crate) async fn open(address: &StoreAddress) -> anyhow::Result<Self> {
        let place = match stores::open_read_only(address) {
            Err(OpenError::Older { .. }) => OpenStore::open(address)?,
            opened => OpenStore::over(opened.map_err(|error| unopened(address, error))?)?,
        };
        let missing = place.store.unindexed(usize::MAX).await?;
        if missing.is_empty() {
            return Ok(Self { place, missing });
        }
        // What cannot be written can still be listed.
        let Ok(writable) = OpenStore::open(address) else { return Ok(Self { place, missing }) };
        let mut progress = ProgressLines::new("indexed", "sessions");
        match writable.runtime.index(|done| progress.report(done.done, done.total)).await {
            Ok(_) => Ok(Self { missing: writable.store.unindexed(usize::MAX).await?, place: writable }),
            Err(_) => Ok(Self { place, missing }),
        }
    }

    /// A page of the sessions that a query selects.
    pub(crate) async fn sessions(&self, query: SessionQuery) -> Result<SessionPage, RuntimeError> {
        if self.missing.is_empty() {
            return self.place.store.query(query).await.map_err(RuntimeError::Store);
        }
        self.place.runtime.sessions(query).await
    }

    /// All sessions that a query selects.
    pub(crate) async fn all(&self, query: SessionQuery) -> Result<Vec<IndexedSession>, RuntimeError> {
        Ok(self.sessions(query.with_limit(usize::MAX)).await?.sessions)
    }

    /// The number of sessions that a query selects from its cursor on.
    pub(crate) async fn count(&self, query: SessionQuery) -> Result<u64, RuntimeError> {
        if self.missing.is_empty() {
            return self.place.store.count(query).await.map_err(RuntimeError::Store);
        }
        self.place.runtime.count_sessions(query).await
    }

    /// Sessions that cannot be read, each with the reason.
    pub(crate) async fn unreadable(&self) -> Vec<(SessionId, String)> {
        let mut unreadable = Vec::new();
        for session in &self.missing {
            if let Err(error) = self.place.view(*session).await {
                unreadable.push((*session, message_of(&error)));
            }
        }
        unreadable
    }
}
