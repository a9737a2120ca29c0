//! Statistics of a render.

use serde::{Deserialize, Serialize};

/// The number of existing items, and of those that are shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShownCount {
    /// The number of existing items.
    pub total: usize,
    /// The number of shown items.
    pub shown: usize,
}

impl ShownCount {
    /// The number of items that are not shown.
    pub fn dropped(&self) -> usize {
        self.total - self.shown
    }
}

/// What a render showed of the turns, and what it left out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Statistics {
    /// The strategy.
    pub strategy: String,
    /// The number of turns.
    pub turns: usize,
    /// The number of turns that are only part of a summary.
    pub turns_summarised: usize,
    /// The number of turns that are shown unchanged.
    pub turns_whole: usize,
    /// The number of turns that are not shown. Their definitions may be.
    pub turns_dropped: usize,
    /// Failed turns; the shown ones are unchanged.
    pub failed_turns: ShownCount,
    /// Calls of `println` by successful turns.
    pub prints: ShownCount,
    /// Calls of tools.
    pub tool_calls: ShownCount,
    /// Definitions that currently exist.
    pub definitions: ShownCount,
    /// The size of the turns in bytes: answers, prints, errors, and calls as far as the turns keep them.
    pub bytes_before: u64,
    /// The size of all messages of the request in bytes, including system prompt and mission.
    pub bytes_after: u64,
    /// An estimate of the tokens of the turns.
    pub tokens_before: u64,
    /// An estimate of the tokens of the request.
    pub tokens_after: u64,
}
