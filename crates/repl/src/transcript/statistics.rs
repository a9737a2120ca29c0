//! What a render left out of a transcript.

use std::collections::HashSet;
use std::sync::Arc;

use backstitch_core::journal::{InnerMessage, Role};
use serde::{Deserialize, Serialize};

use super::Weight;
use crate::compression::Shown;

/// What a render made of a transcript, and what it left out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TranscriptStatistics {
    /// The strategy.
    pub strategy: String,
    /// Messages.
    pub messages: Shown,
    /// Answers of the model.
    pub turns: Shown,
    /// Calls of tools, with their results.
    pub tool_calls: Shown,
    /// Results that are told by a placeholder.
    pub results_elided: usize,
    /// What only the provider understands, on answers.
    pub sidecars: Shown,
    /// About how many bytes all messages have.
    pub bytes_before: u64,
    /// About how many bytes the messages of the request have.
    pub bytes_after: u64,
    /// An estimate of the tokens of all messages.
    pub tokens_before: u64,
    /// An estimate of the tokens of the request.
    pub tokens_after: u64,
}

impl TranscriptStatistics {
    pub(super) fn of(
        strategy: &str,
        before: &[Arc<InnerMessage>],
        after: &[Arc<InnerMessage>],
        results_elided: usize,
    ) -> Self {
        let bytes = |messages: &[Arc<InnerMessage>]| messages.iter().map(|message| Weight::of(message)).sum();
        let (bytes_before, bytes_after) = (bytes(before), bytes(after));
        let shown =
            |count: fn(&[Arc<InnerMessage>]) -> usize| Shown { total: count(before), shown: count(after) };
        Self {
            strategy: strategy.to_owned(),
            messages: shown(<[_]>::len),
            turns: shown(|messages| {
                let answers = messages.iter().filter(|message| message.role() == Role::Assistant);
                answers.map(|message| message.turn).collect::<HashSet<u64>>().len()
            }),
            tool_calls: shown(|messages| {
                messages.iter().filter(|message| message.message.option_call().is_some()).count()
            }),
            results_elided,
            sidecars: shown(|messages| messages.iter().filter(|message| message.provider.is_some()).count()),
            bytes_before,
            bytes_after,
            tokens_before: Weight::tokens(bytes_before),
            tokens_after: Weight::tokens(bytes_after),
        }
    }
}
