//! The messages of a request.

use backstitch_core::journal::Role;
use serde::Serialize;

use super::Statistics;

/// The messages of a request, with statistics.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RenderedHistory {
    /// The system prompt if there is one, then alternating user and assistant messages. The last one is the
    /// user's.
    pub messages: Vec<RenderedMessage>,
    /// What was shown and what was left out.
    pub statistics: Statistics,
}

/// A message of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RenderedMessage {
    /// The author: the system, the user or the assistant.
    pub role: Role,
    /// The text, which is never empty.
    pub text: String,
    /// The number of bytes at the beginning of the text that are the same in each request of the evaluation,
    /// and worth caching.
    pub stable: usize,
}

impl RenderedMessage {
    pub(super) fn new(role: Role, text: String) -> Self {
        Self { role, text, stable: 0 }
    }
}

/// Estimates the number of tokens of a text: one for four bytes of ASCII, and one for each other character.
///
/// The estimate decides when content is left out, and is rather too high than too low.
pub fn estimate_tokens(text: &str) -> u64 {
    let ascii = text.bytes().filter(u8::is_ascii).count();
    // Every other character has exactly one byte that is not a continuation byte.
    let other = text.bytes().filter(|byte| *byte >= 0xC0).count();
    (ascii.div_ceil(4) + other) as u64
}
