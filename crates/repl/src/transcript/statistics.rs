//! Statistics of a rendered transcript.

use std::collections::HashSet;
use std::sync::Arc;

use backstitch_core::journal::{InnerMessage, Role};
use serde::{Deserialize, Serialize};

use super::{TranscriptHistory, Weight};
use crate::compression::ShownCount;

/// What a render showed of a transcript, and what it left out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TranscriptStatistics {
    /// The strategy.
    pub strategy: String,
    /// Messages.
    pub messages: ShownCount,
    /// Answers of the model.
    pub turns: ShownCount,
    /// Calls of tools, with their results.
    pub tool_calls: ShownCount,
    /// Results that are replaced with a placeholder.
    pub results_elided: usize,
    /// Provider data of answers.
    pub sidecars: ShownCount,
    /// The approximate size of all messages in bytes.
    pub bytes_before: u64,
    /// The approximate size of the messages of the request in bytes.
    pub bytes_after: u64,
    /// An estimate of the tokens of all messages.
    pub tokens_before: u64,
    /// An estimate of the tokens of the request.
    pub tokens_after: u64,
}

impl TranscriptStatistics {
    pub(super) fn of(
        strategy: &str,
        before: &TranscriptHistory,
        after: &[Arc<InnerMessage>],
        results_elided: usize,
    ) -> Self {
        let totals = before.totals();
        let bytes_before = totals.bytes;
        let bytes_after = after.iter().map(|message| Weight::of(message)).sum();
        let answers = after.iter().filter(|message| message.role() == Role::Assistant);
        let answers =
            answers.map(|message| (message.evaluation_id, message.turn)).collect::<HashSet<_>>().len();
        let count = |counts: fn(&InnerMessage) -> bool| after.iter().filter(|one| counts(one)).count();
        let calls = count(|message| message.message.option_call().is_some());
        let sidecars = count(|message| message.provider.is_some());
        Self {
            strategy: strategy.to_owned(),
            messages: ShownCount { total: before.len(), shown: after.len() },
            turns: ShownCount { total: totals.answers, shown: answers },
            tool_calls: ShownCount { total: totals.calls, shown: calls },
            results_elided,
            sidecars: ShownCount { total: totals.sidecars, shown: sidecars },
            bytes_before,
            bytes_after,
            tokens_before: Weight::tokens(bytes_before),
            tokens_after: Weight::tokens(bytes_after),
        }
    }
}
