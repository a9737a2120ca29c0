//! The index of a store: sessions as lists show them.
//!
//! A [`SessionSummary`] says what the journal says. An [`IndexedSession`] adds what only the store knows when it is read: who
//! holds the session, and whether items wait in its inbox. Its [status](IndexedSession::status) follows from both. The index
//! also lists the paths that calls changed ([`ListedChanges`]).

use std::str::FromStr;

use super::store::Owner;
use crate::id::SessionId;
use crate::journal::{CallChanges, JournalState, Origin, Position, SessionSummary};
use crate::text_form::words;

words! {
    /// What a session is doing, as a list shows it.
    IndexedStatus = "status of a session" {
        /// A process drives it.
        Running = "running",
        /// Items wait in its inbox, no process holds it, and resuming it takes them in.
        Runnable = "runnable",
        /// An evaluation is open, and its process ended without a word: it was killed.
        Interrupted = "interrupted",
        /// A fork that has an evaluation to continue, and that nobody has driven yet.
        New = "new",
        /// An evaluation is open, and the reason why it is no longer driven is recorded.
        Stopped = "stopped",
        /// It waits for a decision.
        Paused = "paused",
        /// There is nothing to do.
        Idle = "idle",
        /// Its latest evaluation failed.
        Failed = "failed",
        /// Its files could not be restored.
        Poisoned = "poisoned",
    }
}

impl IndexedStatus {
    /// The status of a session in this state, given whether a process holds it and whether items wait in its inbox.
    pub fn of(state: JournalState, presence: SessionPresence) -> Self {
        let SessionPresence { is_held, has_waiting } = presence;
        let is_runnable = has_waiting && !is_held;
        match state {
            JournalState::Poisoned => Self::Poisoned,
            JournalState::Open | JournalState::New | JournalState::Stopped if is_held => Self::Running,
            JournalState::Open => Self::Interrupted,
            JournalState::New => Self::New,
            JournalState::Stopped => Self::Stopped,
            JournalState::Paused | JournalState::Idle | JournalState::Failed if is_runnable => Self::Runnable,
            JournalState::Paused => Self::Paused,
            JournalState::Idle => Self::Idle,
            JournalState::Failed => Self::Failed,
        }
    }

    /// The states that can have this status.
    pub fn states(self) -> &'static [JournalState] {
        match self {
            Self::Running => &[JournalState::Open, JournalState::New, JournalState::Stopped],
            Self::Runnable => &[JournalState::Paused, JournalState::Idle, JournalState::Failed],
            Self::Interrupted => &[JournalState::Open],
            Self::New => &[JournalState::New],
            Self::Stopped => &[JournalState::Stopped],
            Self::Paused => &[JournalState::Paused],
            Self::Idle => &[JournalState::Idle],
            Self::Failed => &[JournalState::Failed],
            Self::Poisoned => &[JournalState::Poisoned],
        }
    }
}

/// The word is not a status.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{word:?} is not a status of a session")]
pub struct UnknownStatus {
    /// The word.
    pub word: String,
}

impl FromStr for IndexedStatus {
    type Err = UnknownStatus;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        Self::of_word(word).ok_or_else(|| UnknownStatus { word: word.to_owned() })
    }
}

/// What the store knows about a session beside its journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SessionPresence {
    /// Whether a process holds it.
    pub is_held: bool,
    /// Whether items wait in its inbox.
    pub has_waiting: bool,
}

/// A session as the index knows it.
#[derive(Debug, Clone, PartialEq)]
pub struct IndexedSession {
    /// What the journal says.
    pub summary: SessionSummary,
    /// Who holds it.
    pub holder: Option<Owner>,
    /// Whether items wait in its inbox.
    pub has_waiting: bool,
}

impl IndexedSession {
    /// The session.
    pub fn id(&self) -> SessionId {
        self.summary.session
    }

    /// What the session is doing.
    pub fn status(&self) -> IndexedStatus {
        let presence = SessionPresence { is_held: self.holder.is_some(), has_waiting: self.has_waiting };
        IndexedStatus::of(self.summary.state, presence)
    }
}

words! {
    /// How a session came to be.
    OriginKind = "origin" {
        /// It was started by itself.
        Root = "root",
        /// It continues from a point of another session.
        Fork = "fork",
        /// It is the session of a sub-agent.
        Call = "call",
    }
}

impl From<&Origin> for OriginKind {
    fn from(origin: &Origin) -> Self {
        match origin {
            Origin::Root => Self::Root,
            Origin::Fork { .. } => Self::Fork,
            Origin::Call { .. } => Self::Call,
        }
    }
}

/// What a call changed, as the index lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedChanges {
    /// Position of the record that ends the call.
    pub position: Position,
    /// The paths or their number; none if neither is known, because the files of the call are not stored any more.
    pub changes: Option<CallChanges>,
}

/// The sessions that changed a path, in the order of their creation.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ChangingSessions {
    /// Those of which the index lists such a change.
    pub certain: Vec<SessionId>,
    /// The others that have calls whose paths the index does not list. Their journals and files may name them.
    pub possible: Vec<SessionId>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_follows_from_state_holder_and_inbox() {
        let of = |state, is_held, has_waiting| {
            IndexedStatus::of(state, SessionPresence { is_held, has_waiting }).as_str()
        };
        let rows = [
            (JournalState::Idle, ["idle", "runnable", "idle", "idle"]),
            (JournalState::Failed, ["failed", "runnable", "failed", "failed"]),
            (JournalState::Open, ["interrupted", "interrupted", "running", "running"]),
            (JournalState::New, ["new", "new", "running", "running"]),
            (JournalState::Stopped, ["stopped", "stopped", "running", "running"]),
            (JournalState::Paused, ["paused", "runnable", "paused", "paused"]),
            (JournalState::Poisoned, ["poisoned"; 4]),
        ];
        for (state, expected) in rows {
            let found = [(false, false), (false, true), (true, false), (true, true)]
                .map(|(is_held, has_waiting)| of(state, is_held, has_waiting));
            assert_eq!(found, expected, "{state:?}");
        }
    }

    #[test]
    fn a_status_names_all_states_that_can_have_it() {
        for state in JournalState::ALL {
            for (is_held, has_waiting) in [(false, false), (false, true), (true, false), (true, true)] {
                let status = IndexedStatus::of(state, SessionPresence { is_held, has_waiting });
                assert!(status.states().contains(&state), "{status} {state:?}");
                assert_eq!(status.as_str().parse(), Ok(status));
            }
        }
    }
}
