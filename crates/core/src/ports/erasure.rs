//! Requests to remove data from a store, and what they report.
//!
//! Two things can be removed: a value, from all that a session recorded ([`Redaction`]), and whole sessions ([`Removal`]). Both are
//! refused while a process holds a session that they concern.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::store::Owner;
use crate::id::SessionId;
use crate::journal::{ObjectRedacted, Point, Position};
use crate::object::ObjectId;
use crate::redaction::SensitiveValue;
use crate::time::Timestamp;

/// Selects between removing data and only reporting what would be removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ErasureMode {
    /// Report, and change nothing.
    DryRun,
    /// Remove.
    #[default]
    Now,
}

/// A value that is to be removed from a session.
#[derive(Debug, Clone)]
pub struct Redaction {
    /// The session. The sessions that it was forked from, its forks, its sub-agents and its callers are redacted with it.
    pub session: SessionId,
    /// The value.
    pub value: SensitiveValue,
    /// Who holds the sessions meanwhile.
    pub owner: Owner,
    /// The time of the `redacted` records.
    pub at: Timestamp,
    /// Whether something is changed.
    pub mode: ErasureMode,
}

/// What a redaction did, or would do.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RedactionReport {
    /// The sessions that were redacted, in the order of their creation. Those without a trace of the value are not listed.
    pub sessions: Vec<RedactedSession>,
    /// The objects whose content was removed.
    pub objects: Vec<ObjectRedacted>,
    /// The files of the sessions' latest states whose content was removed. Those in the directory itself are not touched: a file
    /// that still holds the value is stored again when the directory is next captured.
    pub files: Vec<String>,
    /// Other sessions that need an object whose content was removed.
    pub shared_with: Vec<SessionId>,
    /// Other sessions that hold the value themselves. They were not changed.
    pub elsewhere: Vec<SessionId>,
    /// Records in which the value is still a part of a name, an id, a time or a number, and cannot be replaced.
    pub kept: Vec<Point>,
    /// Lists of files in which the value is a part of a name. They were not changed.
    pub file_names: Vec<ObjectId>,
    /// Whether the store's files are free of what was removed.
    pub erasure: Erasure,
}

/// A session that was redacted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RedactedSession {
    /// The session.
    pub session: SessionId,
    /// The records whose texts were changed.
    pub positions: Vec<Position>,
    /// The number of replacements in them.
    pub replacements: u64,
    /// The number of inbox items that were changed.
    pub inbox: u64,
}

impl RedactedSession {
    /// A session in which nothing was found so far.
    pub fn new(session: SessionId) -> Self {
        Self { session, positions: Vec::new(), replacements: 0, inbox: 0 }
    }
}

impl RedactionReport {
    /// Adds what was found in a session, unless that is nothing.
    pub fn add(&mut self, session: RedactedSession) {
        if !session.positions.is_empty() || session.inbox > 0 {
            self.sessions.push(session);
        }
    }
}

/// Whether the files of a store are free of what was removed from it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Erasure {
    /// They are.
    #[default]
    Complete,
    /// They were not changed, since this was a dry run.
    NotStarted,
    /// They may hold remains in free space or in a log. Running the operation again completes it.
    Pending {
        /// What prevented it.
        reason: String,
    },
}

/// Sessions that are to be deleted.
#[derive(Debug, Clone)]
pub struct Removal {
    /// The sessions. Their sub-agents are deleted with them.
    pub sessions: Vec<SessionId>,
    /// What becomes of forks, and of sub-agents that have not ended.
    pub forks: ForkRemoval,
    /// Who holds the sessions meanwhile.
    pub owner: Owner,
    /// The time of the removal.
    pub at: Timestamp,
    /// Whether something is changed.
    pub mode: ErasureMode,
}

/// What becomes of sessions that depend on one that is to be deleted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ForkRemoval {
    /// Nothing is deleted if there are any.
    #[default]
    Refuse,
    /// They are deleted too.
    Include,
}

/// What a removal did, or would do.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RemovalReport {
    /// The sessions that were deleted, in the order of their creation.
    pub sessions: Vec<RemovedSession>,
    /// The number of objects that were deleted.
    pub objects: u64,
    /// The size of these objects as stored, in bytes.
    pub bytes: u64,
    /// Whether the store's files are free of what was deleted.
    pub erasure: Erasure,
}

/// A session that was deleted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RemovedSession {
    /// The session.
    pub session: SessionId,
    /// The number of its records.
    pub records: u64,
}
