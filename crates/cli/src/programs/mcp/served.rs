//! The sessions of a server, each claimed for the time of its calls.
//!
//! Calls at the same time share one claim. A session that another process holds, or whose directory is held, is waited
//! for. Whether a call is known is decided while the directory is claimed, so that two servers never run one call.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use backstitch::agent_file::AgentDefinition;
use backstitch::host::{OutsideCalls, OutsideMemory};
use backstitch::id::SessionId;
use backstitch::journal::Note;
use backstitch::{Agent, RuntimeError, SessionOptions};
use backstitch_mcp::OpenCalls;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::SERVED;
use super::presence::{Presence, SiblingCalls, sessions};
use crate::error::{CommandError, ErrorCode, code_of};
use crate::open::{OpenStore, short, uncovered};

/// How long a server that starts waits for one that was killed.
const END: Duration = Duration::from_secs(1);

/// How often it tries.
const STEP: Duration = Duration::from_millis(5);

/// The sessions of a server.
pub(super) struct ServedSessions {
    pub(super) place: OpenStore,
    pub(super) agent: Agent,
    pub(super) definition: AgentDefinition,
    /// The session of new calls.
    pub(super) own: SessionId,
    /// Calls of other sessions are looked for.
    pub(super) sees_siblings: bool,
    /// How long a call waits for others that hold its session or its directory.
    pub(super) wait: Duration,
    #[expect(dead_code, reason = "it is locked until it is dropped")]
    pub(super) presence: Option<Presence>,
    /// Recorded when the session is opened: the definition is another one than before.
    pub(super) change: Mutex<Option<Note>>,
    pub(super) state: tokio::sync::Mutex<OpenSessions>,
    pub(super) siblings: tokio::sync::Mutex<SiblingCalls>,
    pub(super) changed: Notify,
}

/// The sessions that are open, and what is known of others.
#[derive(Default)]
pub(super) struct OpenSessions {
    open: HashMap<SessionId, OpenSession>,
    memories: HashMap<SessionId, OutsideMemory>,
    has_reported_coverage: bool,
}

struct OpenSession {
    calls: Arc<OutsideCalls>,
    users: usize,
}

impl ServedSessions {
    /// Claims the session of a call, which its client knows by `id`.
    pub(super) async fn open(self: Arc<Self>, id: Option<String>) -> anyhow::Result<OpenCalls> {
        let until = Instant::now() + self.wait;
        let calls = self.claim(self.own, until).await?;
        let found = self.session_of(&calls, id.as_deref()).await;
        if found.as_ref().is_ok_and(|session| *session == self.own) {
            let own = self.own;
            return Ok(self.opened(own, calls));
        }
        self.release(self.own, calls).await;
        let session = found?;
        let calls = self.claim(session, until).await?;
        Ok(self.opened(session, calls))
    }

    /// Restores what an earlier server left, if nobody holds the session now. The earlier one may still be ending.
    pub(super) async fn recover(self: &Arc<Self>) -> anyhow::Result<()> {
        match self.claim(self.own, Instant::now() + END).await {
            Ok(calls) => {
                self.release(self.own, calls).await;
                Ok(())
            }
            Err(error) if is_held(&error) => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn opened(self: Arc<Self>, session: SessionId, calls: Arc<OutsideCalls>) -> OpenCalls {
        OpenCalls::new(calls, move |calls| Box::pin(async move { self.release(session, calls).await }))
    }

    /// Returns the session that a call belongs to.
    async fn session_of(&self, calls: &OutsideCalls, id: Option<&str>) -> anyhow::Result<SessionId> {
        let Some(id) = id.filter(|_| self.sees_siblings) else { return Ok(self.own) };
        if calls.knows(id).await {
            return Ok(self.own);
        }
        let directory = self.definition.workspace.path.as_deref();
        let mut all = sessions(&self.place.runtime, (SERVED, &self.definition.name), directory).await?;
        all.retain(|session| *session != self.own);
        let found = self.siblings.lock().await.find(&*self.place.store, &all, id).await?;
        Ok(found.unwrap_or(self.own))
    }

    /// Claims a session, or shares its claim with other calls of this process.
    async fn claim(&self, session: SessionId, until: Instant) -> anyhow::Result<Arc<OutsideCalls>> {
        loop {
            let mut state = self.state.lock().await;
            if let Some(open) = state.open.get_mut(&session) {
                open.users += 1;
                return Ok(open.calls.clone());
            }
            match self.open_session(&mut state, session).await {
                Ok(calls) => {
                    state.open.insert(session, OpenSession { calls: calls.clone(), users: 1 });
                    return Ok(calls);
                }
                Err(error) if is_held(&error) && Instant::now() < until => drop(state),
                Err(error) if is_held(&error) => {
                    let waited = format!("the call was not run: it waited for {} s", self.wait.as_secs());
                    return Err(error.context(waited));
                }
                Err(error) => return Err(error),
            }
            tokio::time::sleep(STEP).await;
        }
    }

    /// Opens a session with its files, and ends what an earlier process left open.
    async fn open_session(
        &self,
        state: &mut OpenSessions,
        session: SessionId,
    ) -> anyhow::Result<Arc<OutsideCalls>> {
        let files = self.place.open_files(&self.agent, session).await?.map(|opened| opened.workspace);
        if !state.has_reported_coverage {
            state.has_reported_coverage = true;
            if let Some(paths) = files.as_deref().and_then(uncovered) {
                eprintln!("not covered, so neither captured nor restored: {paths}");
            }
        }
        // A new session is stored with its first call.
        let id = (session == self.own).then_some(session);
        let tags = [(SERVED.to_owned(), self.definition.name.clone())].into();
        let options = SessionOptions { workspace: files, id, tags, ..SessionOptions::default() };
        let memory = state.memories.get(&session).cloned();
        let opened = self.place.runtime.open_outside(session, &self.agent, options, memory).await;
        let calls = opened.map_err(|error| match error.cause() {
            RuntimeError::EvaluationOpen { .. } => {
                let id = short(session);
                let message = format!("session {id} has not answered yet");
                let hint = format!("`backstitch resume {id}` continues, `backstitch cancel {id}` ends it");
                CommandError::new(ErrorCode::EvaluationOpen, message).with_hint(hint).into()
            }
            _ => anyhow::Error::from(error),
        })?;
        let change = self.change.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(change) = change.filter(|_| session == self.own)
            && let Err(error) = calls.add_note(change).await
        {
            calls.release().await?;
            return Err(error.into());
        }
        Ok(calls)
    }

    /// Releases a session, unless other calls use it.
    async fn release(&self, session: SessionId, calls: Arc<OutsideCalls>) {
        let mut state = self.state.lock().await;
        let Some(open) = state.open.get_mut(&session) else { return };
        open.users -= 1;
        if open.users > 0 {
            return;
        }
        drop(state.open.remove(&session));
        let closed = calls.close().await;
        let memory = calls.memory().await;
        state.memories.insert(session, memory);
        let released = calls.release().await;
        drop(calls);
        for error in [closed.err(), released.err()].into_iter().flatten() {
            eprintln!("session {}: {error}", short(session));
        }
        self.changed.notify_waiters();
    }

    /// Stops all running calls. They are rolled back.
    pub(super) async fn stop(&self) {
        for open in self.state.lock().await.open.values() {
            open.calls.stop();
        }
    }

    /// Ends the calls that wait for a decision: nobody waits for their results.
    pub(super) async fn give_up_waiting(&self) {
        for open in self.state.lock().await.open.values() {
            open.calls.give_up_waiting();
        }
    }

    /// Waits until no call runs, and all sessions are released.
    pub(super) async fn wait_until_idle(&self) {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            if self.state.lock().await.open.is_empty() {
                return;
            }
            changed.await;
        }
    }
}

fn is_held(error: &anyhow::Error) -> bool {
    matches!(code_of(error), ErrorCode::SessionHeld | ErrorCode::WorkspaceHeld)
}
