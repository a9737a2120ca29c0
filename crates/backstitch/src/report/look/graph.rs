//! The branches of a session, and the sessions around it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::{CallId, SessionId};
use crate::journal::{Point, Position};
use crate::ports::OriginKind;
use crate::report::Version;

/// The branches of a session, and the sessions that begin in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionGraph {
    /// Version of the form.
    pub v: Version,
    /// The session.
    pub session: SessionId,
    /// The number of its records.
    pub head: Position,
    /// How it came to be.
    pub origin: OriginKind,
    /// The session that it comes from, and for a fork where it begins.
    pub parent: Option<ParentSession>,
    /// Its rewinds, in the order of the journal.
    pub rewinds: Vec<RewindEntry>,
    /// Its forks, at most a thousand.
    pub forks: Vec<ForkEntry>,
    /// The sessions of its sub-agents.
    pub sub_agents: Vec<SubAgentEntry>,
}

/// The session that another one comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ParentSession {
    /// The session.
    pub session: SessionId,
    /// Where a fork begins.
    pub position: Option<Position>,
    /// The call of a sub-agent.
    pub call: Option<CallId>,
}

/// A fork of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ForkEntry {
    /// The fork.
    pub session: SessionId,
    /// Where it begins.
    pub position: Position,
}

/// A sub-agent of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SubAgentEntry {
    /// Its session.
    pub session: SessionId,
    /// Its call.
    pub call: CallId,
    /// The record that starts the call.
    pub started: Point,
}

/// A rewind: what was visible at the cut `to` is visible from the record `at` on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RewindEntry {
    /// Position of the rewind.
    pub at: Position,
    /// The cut.
    pub to: Position,
}
