//! The messages of a request.

use backstitch_core::journal::Role;
use serde::Serialize;

use super::Statistics;

/// The messages of a request, and what is not in them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RenderedHistory {
    /// The system prompt if there is one, then user and assistant in turns. The last one is the user's.
    pub messages: Vec<RenderedMessage>,
    /// What was left out.
    pub statistics: Statistics,
}

/// A message of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RenderedMessage {
    /// Who speaks: the system, the user or the assistant.
    pub role: Role,
    /// What is said. It is never empty.
    pub text: String,
    /// So many bytes at the beginning of the text are the same in each request of the evaluation, and worth caching.
    pub stable: usize,
}

impl RenderedMessage {
    pub(super) fn new(role: Role, text: String) -> Self {
        Self { role, text, stable: 0 }
    }
}

/// About how many tokens a text has: one for four bytes of ASCII, and one for each other character.
///
/// It is an estimate for deciding when to leave something out, and errs on the side of more.
pub fn estimate_tokens(text: &str) -> u64 {
    let ascii = text.bytes().filter(u8::is_ascii).count();
    // Of each other character exactly one byte is no continuation.
    let other = text.bytes().filter(|byte| *byte >= 0xC0).count();
    (ascii.div_ceil(4) + other) as u64
}
