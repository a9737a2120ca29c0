//! Reports of verification and salvage.

use std::collections::BTreeSet;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::SessionId;
use crate::journal::Position;
use crate::object::ObjectId;
use crate::ports::erasure::RemovedSession;

/// Result of verifying a store.
#[derive(Debug, Default)]
pub struct VerifyReport {
    /// Number of sessions read.
    pub sessions: u64,
    /// Number of records read.
    pub records: u64,
    /// Number of objects read.
    pub objects: u64,
    /// Damage in the order of detection.
    pub findings: Vec<Finding>,
    /// Replaced records by session, in the order of their creation.
    pub redacted: Vec<(SessionId, Vec<Position>)>,
    /// Needed objects whose content was redacted.
    pub redacted_objects: BTreeSet<ObjectId>,
    /// Sessions that were removed.
    pub removed: Vec<RemovedSession>,
    /// Needed objects that were lost when an earlier, damaged store was salvaged. This is known and final:
    /// the store itself is sound, and salvaging it again restores nothing.
    pub lost: BTreeSet<ObjectId>,
}

impl VerifyReport {
    /// Returns whether there are no findings. Losses of an earlier salvage are not findings: see
    /// [`lost`](Self::lost).
    pub fn is_sound(&self) -> bool {
        self.findings.is_empty()
    }

    /// Adds a finding.
    pub fn add(&mut self, place: StoreLocation, problem: impl fmt::Display) {
        self.findings.push(Finding { place, problem: problem.to_string() });
    }
}

/// One instance of damage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Location of the damage.
    pub place: StoreLocation,
    /// Description for people.
    pub problem: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.place, self.problem)
    }
}

/// A location in a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreLocation {
    /// The database file as a whole.
    File,
    /// A session, but no single record of it.
    Session(SessionId),
    /// A record by its session and position.
    Record(SessionId, Position),
    /// An object by its id.
    Object(ObjectId),
}

impl fmt::Display for StoreLocation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File => formatter.write_str("the file"),
            Self::Session(session) => write!(formatter, "session {session}"),
            Self::Record(session, position) => write!(formatter, "session {session}, record {position}"),
            Self::Object(object) => write!(formatter, "object {object}"),
        }
    }
}

/// Result of salvaging a damaged store.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SalvageReport {
    /// Sessions in the order of creation.
    pub sessions: Vec<SalvagedSession>,
    /// Number of copied objects.
    pub objects: u64,
    /// Needed objects that could not be read.
    pub lost_objects: Vec<ObjectId>,
    /// Descriptions of other data that could not be copied.
    pub notes: Vec<String>,
}

impl SalvageReport {
    /// Returns whether nothing was lost.
    pub fn is_complete(&self) -> bool {
        let whole = self.sessions.iter().all(|session| session.lost.is_none());
        whole && self.lost_objects.is_empty() && self.notes.is_empty()
    }
}

/// Result for one session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SalvagedSession {
    /// Id of the session, the same in both stores.
    pub session: SessionId,
    /// Number of copied records. A session without any does not exist in the new store.
    pub records: u64,
    /// Lost end of the journal, or `None` if all of it was copied.
    pub lost: Option<LostTail>,
}

/// The end of a journal that could not be copied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LostTail {
    /// Position of the first lost record.
    pub position: Position,
    /// Description of the damage at that position.
    pub reason: String,
    /// Number of lost records, as far as they can be counted.
    pub records: u64,
}
