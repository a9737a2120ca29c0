//! Positions in a journal.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::SessionId;

/// The position of a record in its session's journal: 0, 1, 2 and so on without a gap.
///
/// As a *cut*, a position means "everything before this record": the cut at 0 is the empty journal.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Position(u64);

impl Position {
    /// The position of the first record.
    pub const START: Self = Self(0);

    /// Creates a position from its number.
    pub fn new(number: u64) -> Self {
        Self(number)
    }

    /// The number of the position, which is also the number of records before it.
    pub fn number(self) -> u64 {
        self.0
    }

    /// Returns the position `count` records later.
    #[must_use]
    pub fn after(self, count: usize) -> Self {
        Self(self.0.saturating_add(count as u64))
    }

    /// Returns the next position.
    #[must_use]
    pub fn next(self) -> Self {
        self.after(1)
    }
}

impl fmt::Display for Position {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, formatter)
    }
}

impl fmt::Debug for Position {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "@{}", self.0)
    }
}

/// A position in the journal of one session. A fork shares records with its parent, so a position alone is
/// ambiguous.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Point {
    /// The session.
    pub session: SessionId,
    /// Position in the journal of that session.
    pub position: Position,
}

/// The number of a branch. A journal starts on branch 0, and each rewind starts the next one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Branch(pub u64);
