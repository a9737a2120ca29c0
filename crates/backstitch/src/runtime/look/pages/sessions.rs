//! Pages of sessions: all that a query selects, those with a text, and those that wait for a person.

use backstitch_runtime::RuntimeError;

use crate::id::SessionId;
use crate::journal::Origin;
use crate::ports::RowSink;
use crate::ports::{
    IndexedSession, IndexedStatus, OriginKind, SelectError, SelectLimits, SessionOrder, SessionPage,
    SessionQuery, SqlValue,
};
use crate::report::{
    ApprovalsPage, ForkEntry, ListedSession, ParentSession, QueryPage, RewindEntry, SessionGraph,
    SessionOverview, SessionsPage, SubAgentEntry, Version, WaitingReport, WaitingSession, sql_json,
};
use crate::runtime::Runtime;
use crate::tool::with_causes;
use crate::view::JournalView;

/// How many pages of the index are searched for a text at a time.
const MOST_SEARCHED: usize = 50;

/// The most forks that a graph shows.
const MOST_FORKS: usize = 1_000;

/// Which sessions a page has.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SessionsPageOptions {
    /// What they are selected by, with order, limit and cursor.
    pub query: SessionQuery,
    /// A text in the mission, the agent, the directory, the id or a tag, in any case.
    pub search: Option<String>,
}

impl Runtime {
    /// Lists a page of sessions. A search may return fewer sessions than the limit, or none, with a cursor: the rest is searched by the
    /// following pages.
    pub async fn sessions_page(&self, options: SessionsPageOptions) -> Result<SessionsPage, RuntimeError> {
        let SessionsPageOptions { mut query, search } = options;
        let mut index = self.session_index().await?;
        // What cannot be written can still be listed.
        let _ = index.fill(|_| {}).await;
        let unreadable = if query.after.is_none() { index.unreadable().await } else { Vec::new() };
        let search = search.map(|text| text.to_lowercase()).filter(|text| !text.is_empty());
        let mut found = Vec::new();
        for _ in 0..MOST_SEARCHED {
            let SessionPage { sessions, next } = index.page(query.clone()).await?;
            let is_selected = |one: &IndexedSession| search.as_deref().is_none_or(|text| has_text(one, text));
            found.extend(sessions.into_iter().filter(is_selected).map(ListedSession::from));
            query.after = next;
            if !found.is_empty() || query.after.is_none() {
                break;
            }
        }
        let next = query.after.map(|cursor| cursor.as_str().to_owned());
        Ok(SessionsPage { v: Version, sessions: found, unreadable, next })
    }

    /// Lists a page of the sessions that wait for a person, with what they wait for. A session that cannot be read is listed with the
    /// reason.
    pub async fn approvals_page(&self, query: SessionQuery) -> Result<ApprovalsPage, RuntimeError> {
        let statuses = vec![IndexedStatus::Paused, IndexedStatus::Poisoned];
        let origins = vec![OriginKind::Root, OriginKind::Fork];
        let mut index = self.session_index().await?;
        let _ = index.fill(|_| {}).await;
        let SessionPage { sessions, next } = index.page(SessionQuery { statuses, origins, ..query }).await?;
        let mut waiting = Vec::new();
        for one in sessions {
            let read = async { self.waiting(&self.view(one.id()).await?).await };
            let (decisions, error) = match read.await {
                Ok(decisions) => (decisions, None),
                Err(error) => (Vec::new(), Some(with_causes(&error))),
            };
            waiting.push(WaitingSession { session: one.into(), decisions, error });
        }
        Ok(ApprovalsPage { v: Version, sessions: waiting, next: next.map(|next| next.as_str().to_owned()) })
    }

    /// Lists the decisions that a session waits for, with those of its sub-agents.
    pub async fn waiting_report(&self, view: &JournalView) -> Result<WaitingReport, RuntimeError> {
        let decisions = self.waiting(view).await?;
        Ok(WaitingReport { v: Version, session: view.session_id(), decisions })
    }

    /// Reports a session without its lists.
    pub async fn overview(&self, view: &JournalView) -> Result<SessionOverview, RuntimeError> {
        let session = view.session_id();
        let one = self.find_indexed(session).await?;
        let holder = self.store.store.holder(session).await?;
        let has_waiting = one.is_some_and(|one| one.has_waiting);
        // The view may be newer than the index.
        let listed = ListedSession::from(IndexedSession { summary: view.summary(), holder, has_waiting });
        Ok(SessionOverview {
            listed,
            messages: view.message_count(),
            calls: view.calls().count(),
            evaluations: view.evaluations().count(),
            requests: view.evaluations().map(|evaluation| evaluation.requests.len()).sum(),
            rewinds: rewinds(view),
            decisions: self.waiting(view).await?,
            rights: self.session_at(view, None).await?.rights().await,
            root: view.files().map(|files| files.root),
        })
    }

    /// Finds a session in the index.
    async fn find_indexed(&self, session: SessionId) -> Result<Option<IndexedSession>, RuntimeError> {
        let query = SessionQuery::new().with_sessions(vec![session]).with_limit(1);
        Ok(self.store.store.query(query).await?.sessions.pop())
    }

    /// Reports the branches of a session, and the sessions that begin in it.
    pub async fn graph(&self, view: &JournalView) -> Result<SessionGraph, RuntimeError> {
        let session = view.session_id();
        let of_session = SessionQuery::new().with_parent(session).with_origin(OriginKind::Fork);
        let of_session = of_session.with_order(SessionOrder::OldestFirst).with_limit(MOST_FORKS);
        let forks = self.sessions(of_session).await?.sessions.into_iter().filter_map(|fork| {
            match fork.summary.origin {
                Origin::Fork { position, .. } => Some(ForkEntry { session: fork.summary.session, position }),
                _ => None,
            }
        });
        let sub_agents = view.calls().filter_map(|call| {
            let started = call.intent.as_ref()?.point;
            Some(SubAgentEntry { session: call.session()?, call: call.call_id, started })
        });
        let origin = &view.created().origin;
        let parent = match origin {
            Origin::Root => None,
            Origin::Fork { session, position } => {
                Some(ParentSession { session: *session, position: Some(*position), call: None })
            }
            Origin::Call { session, call } => {
                Some(ParentSession { session: *session, position: None, call: Some(*call) })
            }
        };
        Ok(SessionGraph {
            v: Version,
            session,
            head: view.head(),
            origin: origin.into(),
            parent,
            rewinds: rewinds(view),
            forks: forks.collect(),
            sub_agents: sub_agents.collect(),
        })
    }

    /// Executes one SQL statement that reads, as [`query`](Self::query) does, and returns its rows up to these limits and this many bytes.
    pub async fn query_page(
        &self,
        sql: &str,
        limits: SelectLimits,
        bytes: usize,
    ) -> Result<QueryPage, SelectError> {
        let mut rows = CollectedRows { left: bytes, ..CollectedRows::default() };
        let selected = self.query(sql, limits, &mut rows).await?;
        let is_cut = rows.is_full || selected.is_cut;
        Ok(QueryPage { v: Version, columns: rows.columns, rows: rows.rows, is_cut })
    }
}

/// Whether a session has a text, which is in lower case.
fn has_text(session: &IndexedSession, text: &str) -> bool {
    let summary = &session.summary;
    let has = |value: &str| value.to_lowercase().contains(text);
    has(&summary.mission)
        || summary.agent.as_deref().is_some_and(has)
        || summary.workspace.as_deref().is_some_and(has)
        || summary.tags.iter().any(|(key, value)| has(&format!("{key}={value}")))
        || has(&summary.session.to_string())
}

fn rewinds(view: &JournalView) -> Vec<RewindEntry> {
    view.lineage().rewinds().iter().map(|&(at, to)| RewindEntry { at, to }).collect()
}

/// Rows of a query, up to a number of bytes.
#[derive(Default)]
struct CollectedRows {
    columns: Vec<String>,
    rows: Vec<Vec<serde_json::Value>>,
    left: usize,
    is_full: bool,
}

impl RowSink for CollectedRows {
    fn columns(&mut self, names: Vec<String>) {
        self.columns = names;
    }

    fn row(&mut self, values: Vec<SqlValue>) -> bool {
        let row: Vec<_> = values.iter().map(sql_json).collect();
        let size = serde_json::to_vec(&row).map_or(0, |row| row.len());
        match self.left.checked_sub(size) {
            Some(left) => {
                self.left = left;
                self.rows.push(row);
            }
            None => self.is_full = true,
        }
        !self.is_full
    }
}
