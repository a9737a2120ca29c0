//! Queries over the index of a store.
//!
//! Queries run over the sessions that have a current summary, in the order of their creation. A page ends with a cursor, which
//! stays valid while sessions are added and change: a session that was created before the cursor's place is neither repeated nor
//! left out.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::index::{IndexedSession, IndexedStatus, OriginKind};
use crate::id::SessionId;
use crate::journal::EvaluationOutcome;
use crate::time::Timestamp;

/// The order of a query's results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SessionOrder {
    /// The session that was created last comes first.
    #[default]
    NewestFirst,
    /// The session that was created first comes first.
    OldestFirst,
}

/// A place between two results of a query. Only the store that returned it can read it, and only for a query in the same order.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SessionCursor(String);

impl SessionCursor {
    /// The cursor that a store writes like this.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The cursor as it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A range of time: from `since` on and before `until`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TimeRange {
    /// The first moment.
    pub since: Option<Timestamp>,
    /// The first moment after the range.
    pub until: Option<Timestamp>,
}

impl TimeRange {
    /// All times from this one on.
    pub fn since(since: Timestamp) -> Self {
        Self { since: Some(since), until: None }
    }

    /// Whether a moment lies in the range.
    pub fn contains(&self, at: Timestamp) -> bool {
        self.since.is_none_or(|since| at >= since) && self.until.is_none_or(|until| at < until)
    }
}

/// Which sessions to list. A session has to fulfil every condition; an empty list is not a condition.
///
/// ```
/// use backstitch_core::ports::{IndexedStatus, SessionQuery};
///
/// let query = SessionQuery::new()
///     .with_status(IndexedStatus::Interrupted)
///     .with_status(IndexedStatus::Stopped)
///     .with_tag("team", "a")
///     .with_limit(20);
/// assert_eq!(query.statuses.len(), 2);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionQuery {
    /// Any of these statuses.
    pub statuses: Vec<IndexedStatus>,
    /// Any of these outcomes of the latest evaluation.
    pub outcomes: Vec<EvaluationOutcome>,
    /// This name.
    pub name: Option<String>,
    /// All of these tags.
    pub tags: BTreeMap<String, String>,
    /// This agent.
    pub agent: Option<String>,
    /// Files in this directory.
    pub workspace: Option<String>,
    /// Any of these origins.
    pub origins: Vec<OriginKind>,
    /// A fork or a sub-agent of any of these sessions.
    pub parents: Vec<SessionId>,
    /// Any of these sessions, if there is a list. An empty one selects none.
    pub sessions: Option<Vec<SessionId>>,
    /// Created in this range.
    pub created: TimeRange,
    /// With a last record in this range.
    pub updated: TimeRange,
    /// The order of the results.
    pub order: SessionOrder,
    /// The most results of a page. Zero counts as one.
    pub limit: usize,
    /// Continues after an earlier page of the same query.
    pub after: Option<SessionCursor>,
}

impl Default for SessionQuery {
    fn default() -> Self {
        Self {
            statuses: Vec::new(),
            outcomes: Vec::new(),
            name: None,
            tags: BTreeMap::new(),
            agent: None,
            workspace: None,
            origins: Vec::new(),
            parents: Vec::new(),
            sessions: None,
            created: TimeRange::default(),
            updated: TimeRange::default(),
            order: SessionOrder::default(),
            limit: Self::DEFAULT_LIMIT,
            after: None,
        }
    }
}

impl SessionQuery {
    /// The most results of a page by default.
    pub const DEFAULT_LIMIT: usize = 100;

    /// All sessions, the newest first, in pages of [`SessionQuery::DEFAULT_LIMIT`].
    pub fn new() -> Self {
        Self::default()
    }

    /// All sessions but those of sub-agents, which their parents name.
    pub fn roots() -> Self {
        Self { origins: vec![OriginKind::Root, OriginKind::Fork], ..Self::default() }
    }

    /// Adds a status to those that are listed.
    #[must_use]
    pub fn with_status(mut self, status: IndexedStatus) -> Self {
        self.statuses.push(status);
        self
    }

    /// Adds an outcome to those that are listed.
    #[must_use]
    pub fn with_outcome(mut self, outcome: EvaluationOutcome) -> Self {
        self.outcomes.push(outcome);
        self
    }

    /// Lists only sessions with this name. There may be several, if some were imported.
    #[must_use]
    pub fn with_name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Lists only sessions with this tag.
    #[must_use]
    pub fn with_tag(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.tags.insert(key.into(), value.into());
        self
    }

    /// Lists only sessions of this agent.
    #[must_use]
    pub fn with_agent(mut self, name: impl Into<String>) -> Self {
        self.agent = Some(name.into());
        self
    }

    /// Lists only sessions with files in this directory.
    #[must_use]
    pub fn with_workspace(mut self, directory: impl Into<String>) -> Self {
        self.workspace = Some(directory.into());
        self
    }

    /// Adds an origin to those that are listed.
    #[must_use]
    pub fn with_origin(mut self, origin: OriginKind) -> Self {
        self.origins.push(origin);
        self
    }

    /// Adds a session to those whose forks and sub-agents are listed.
    #[must_use]
    pub fn with_parent(mut self, parent: SessionId) -> Self {
        self.parents.push(parent);
        self
    }

    /// Lists only these sessions.
    #[must_use]
    pub fn with_sessions(mut self, sessions: Vec<SessionId>) -> Self {
        self.sessions = Some(sessions);
        self
    }

    /// Lists only sessions that were created in this range.
    #[must_use]
    pub fn with_created(mut self, range: TimeRange) -> Self {
        self.created = range;
        self
    }

    /// Lists only sessions whose last record was made in this range.
    #[must_use]
    pub fn with_updated(mut self, range: TimeRange) -> Self {
        self.updated = range;
        self
    }

    /// Sets the order of the results.
    #[must_use]
    pub fn with_order(mut self, order: SessionOrder) -> Self {
        self.order = order;
        self
    }

    /// Sets the most results of a page.
    #[must_use]
    pub fn with_limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    /// Continues after an earlier page.
    #[must_use]
    pub fn with_cursor(mut self, cursor: SessionCursor) -> Self {
        self.after = Some(cursor);
        self
    }

    /// Whether a session fulfils all conditions, wherever the cursor stands.
    pub fn accepts(&self, session: &IndexedSession) -> bool {
        let summary = &session.summary;
        let is_tagged = |(key, value): (&String, &String)| summary.tags.get(key) == Some(value);
        let is_child = |parent: SessionId| self.parents.contains(&parent);
        any(&self.statuses, || Some(session.status()))
            && any(&self.outcomes, || summary.outcome)
            && any(&self.origins, || Some(OriginKind::from(&summary.origin)))
            && (self.parents.is_empty() || summary.origin.parent().is_some_and(is_child))
            && self.sessions.as_ref().is_none_or(|sessions| sessions.contains(&summary.session))
            && self.name.as_ref().is_none_or(|name| summary.name.as_deref() == Some(name))
            && self.tags.iter().all(is_tagged)
            && self.agent.as_ref().is_none_or(|agent| summary.agent.as_deref() == Some(agent))
            && self.workspace.as_ref().is_none_or(|files| summary.workspace.as_deref() == Some(files))
            && self.created.contains(summary.created_at)
            && self.updated.contains(summary.updated_at)
    }
}

fn any<T: PartialEq>(wanted: &[T], found: impl FnOnce() -> Option<T>) -> bool {
    wanted.is_empty() || found().is_some_and(|found| wanted.contains(&found))
}

/// Results of a query.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SessionPage {
    /// The sessions, at most as many as the query's limit; fewer only at the end.
    pub sessions: Vec<IndexedSession>,
    /// Where the next page begins; none at the end.
    pub next: Option<SessionCursor>,
}
