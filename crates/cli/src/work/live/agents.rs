//! Sub-agents, by the sessions that they work in.

use std::collections::HashMap;

use backstitch::id::SessionId;
use backstitch::journal::CallStarted;

use crate::open::short;

/// The names of the sub-agents of a session.
#[derive(Default)]
pub(super) struct AgentNames(HashMap<SessionId, String>);

impl AgentNames {
    /// Notes a call that starts. That of a sub-agent names the session of the sub-agent.
    pub(super) fn note_call(&mut self, started: &CallStarted) {
        if let Some(session) = started.session {
            self.0.insert(session, started.name.clone());
        }
    }

    /// Returns the name of a sub-agent, if its call has started here.
    pub(super) fn named(&self, session: SessionId) -> Option<&str> {
        self.0.get(&session).map(String::as_str)
    }

    /// Returns the name of a sub-agent. One whose call started in another process has none, so its session is named.
    pub(super) fn of(&self, session: SessionId) -> String {
        self.0.get(&session).cloned().unwrap_or_else(|| format!("sub-agent {}", short(session)))
    }
}
