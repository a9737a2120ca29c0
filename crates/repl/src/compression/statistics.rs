//! What a render left out.

use serde::{Deserialize, Serialize};

/// How many there are of something, and how many of them are shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShownCount {
    /// How many there are.
    pub total: usize,
    /// How many are shown.
    pub shown: usize,
}

impl ShownCount {
    /// How many are not shown.
    pub fn dropped(&self) -> usize {
        self.total - self.shown
    }
}

/// What a render made of the turns, and what it left out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Statistics {
    /// The strategy.
    pub strategy: String,
    /// How many turns there are.
    pub turns: usize,
    /// How many of them are told by a summary alone.
    pub turns_summarised: usize,
    /// How many of them stand in the request as they were.
    pub turns_whole: usize,
    /// How many of them are told neither way. What they defined may still be.
    pub turns_dropped: usize,
    /// Failed turns; those that are shown are shown as they were.
    pub failed_turns: ShownCount,
    /// Calls of `println` by turns that succeeded.
    pub prints: ShownCount,
    /// Calls of tools.
    pub tool_calls: ShownCount,
    /// Definitions that exist now.
    pub definitions: ShownCount,
    /// How many bytes the turns have: answers, prints, errors, and calls as far as the turns keep them.
    pub bytes_before: u64,
    /// How many bytes all messages of the request have, system prompt and mission included.
    pub bytes_after: u64,
    /// An estimate of the tokens of the turns.
    pub tokens_before: u64,
    /// An estimate of the tokens of the request.
    pub tokens_after: u64,
}
