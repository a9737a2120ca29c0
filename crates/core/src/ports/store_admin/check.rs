//! Reports of verification and salvage.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Serialize, Serializer};

use crate::id::SessionId;
use crate::journal::Position;
use crate::object::ObjectId;
use crate::ports::erasure::RemovedSession;

/// Result of verifying a store.
#[derive(Debug, Default, Serialize)]
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
    #[serde(serialize_with = "by_session")]
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

/// Writes the replaced records of each session as an object with names.
fn by_session<S: Serializer>(
    redacted: &[(SessionId, Vec<Position>)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Named<'a> {
        session: &'a SessionId,
        positions: &'a [Position],
    }
    serializer.collect_seq(redacted.iter().map(|(session, positions)| Named { session, positions }))
}

/// One instance of damage. Its serialized form is its text.
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

impl Serialize for Finding {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
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
#[derive(Debug, Default, Serialize)]
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SalvagedSession {
    /// Id of the session, the same in both stores.
    pub session: SessionId,
    /// Number of copied records. A session without any does not exist in the new store.
    pub records: u64,
    /// Lost end of the journal, or `None` if all of it was copied.
    pub lost: Option<LostTail>,
}

/// The end of a journal that could not be copied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LostTail {
    /// Position of the first lost record.
    pub position: Position,
    /// Description of the damage at that position.
    pub reason: String,
    /// Number of lost records, as far as they can be counted.
    pub records: u64,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn reports_serialize_as_the_command_prints_them() {
        let session: SessionId = "01890a5d-ac96-774b-bcce-b302099a8057".parse().unwrap();
        let mut report =
            VerifyReport { redacted: vec![(session, vec![Position::new(3)])], ..VerifyReport::default() };
        report.add(StoreLocation::Session(session), "it is damaged");
        let value = serde_json::to_value(&report).unwrap();
        assert_eq!(value["findings"], json!([format!("session {session}: it is damaged")]));
        assert_eq!(value["redacted"], json!([{"session": session, "positions": [3]}]));
        assert!(!report.is_sound());
    }
}
