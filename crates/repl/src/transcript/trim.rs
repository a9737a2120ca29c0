//! The last answers, and the messages before the first.

use std::sync::Arc;

use backstitch_core::journal::InnerMessage;
use backstitch_core::message::{Content, Part};
use serde::{Deserialize, Serialize};

use super::history::Block;
use super::{RenderedTranscript, TranscriptHistory, TranscriptStatistics, TranscriptStrategy, Weight};
use crate::compression::{ConfiguredStrategy, Strategy};
use crate::steps::{first, rounded_cut};

/// Shows the last answers with their calls and results.
///
/// It drops several answers at once rather than one with each request, so that most requests share the
/// beginning of the previous one and can be cached. A note about the dropped answers is added to the first
/// user message.
pub type Trim = ConfiguredStrategy<TrimOptions>;

/// The options of [`Trim`]. The stricter of the two limits applies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TrimOptions {
    /// The maximum number of answers; without one, all.
    pub turns: Option<usize>,
    /// The maximum number of tokens of the whole request, by an estimate. The last answer is always shown.
    pub tokens: Option<u64>,
    /// Whether a note about dropped answers is added.
    pub note: bool,
}

impl Default for TrimOptions {
    fn default() -> Self {
        Self { turns: Some(20), tokens: None, note: true }
    }
}

impl TrimOptions {
    /// The number of blocks to drop.
    fn cut(&self, history: &TranscriptHistory) -> usize {
        let blocks = history.blocks().len();
        let mut cut = 0;
        if let Some(turns) = self.turns.map(|turns| turns.max(1)) {
            cut = rounded_cut(blocks, blocks.saturating_sub(turns), turns);
        }
        if let Some(tokens) = self.tokens {
            // The remaining bytes if the blocks before one are dropped.
            let left = |from| history.totals().bytes.saturating_sub(history.weight_before(from));
            let least = first(0..blocks, |from| Weight::tokens(left(from)) <= tokens);
            cut = cut.max(rounded_cut(blocks, least, blocks - least));
        }
        cut
    }
}

impl TranscriptStrategy for TrimOptions {}

impl Strategy for TrimOptions {
    const NAME: &'static str = "trim";
    const VERSION: u32 = 1;
    type History<'a> = &'a TranscriptHistory;
    type Rendered = RenderedTranscript;

    fn render(&self, history: &TranscriptHistory) -> RenderedTranscript {
        let (blocks, cut) = (history.blocks(), self.cut(history));
        let stay: Vec<&Block> = staying(history, cut);
        let count = cut - stay.len();
        let mut places: Vec<u64> = history.apart().collect();
        let later = (cut..blocks.len()).filter_map(|index| blocks.get(index));
        places.extend(stay.into_iter().chain(later).flat_map(|block| block.places.iter().copied()));
        places.sort_unstable();
        let note = Some(count).filter(|count| *count > 0 && self.note).map(|count| note(history, cut, count));
        let kept = places.into_iter().filter_map(|place| {
            let message = history.at(place)?;
            Some(match &note {
                Some(note) if Some(place) == history.first_user() => with_note(message, note),
                _ => message.clone(),
            })
        });
        let kept: Vec<Arc<InnerMessage>> = kept.collect();
        let statistics = TranscriptStatistics::of(Self::NAME, history, &kept, 0);
        RenderedTranscript { messages: kept, statistics }
    }
}

/// The blocks before a cut that stay nevertheless.
fn staying(history: &TranscriptHistory, cut: usize) -> Vec<&Block> {
    let blocks = history.blocks();
    let before_cut = |turn: &u64| {
        let index = blocks.binary_search_by_key(turn, |block| block.turn).ok()?;
        blocks.get(index).filter(|_| index < cut)
    };
    let openings = history.openings().iter().filter_map(before_cut);
    let open = history.open().iter().filter(|turn| !history.openings().contains(*turn));
    openings.chain(open.filter_map(before_cut)).collect()
}

/// The note about the dropped blocks before a cut.
fn note(history: &TranscriptHistory, cut: usize, count: usize) -> String {
    let blocks = history.blocks();
    let turn = |index: usize| blocks.get(index).filter(|block| block.may_go()).map(|block| block.turn);
    let first = (0..cut).find_map(turn).unwrap_or_default();
    let last = (0..cut).rev().find_map(turn).unwrap_or_default();
    match count {
        1 => format!("[Answer {first}, with its calls and results, is not shown.]"),
        _ => format!("[{count} answers, {first} to {last}, with their calls and results, are not shown.]"),
    }
}

/// The message, with a note as its last part.
fn with_note(message: &Arc<InnerMessage>, note: &str) -> Arc<InnerMessage> {
    let mut message = InnerMessage::clone(message);
    if let Content::Parts(parts) = &mut message.message.content {
        parts.parts.push(Part::text(note));
    }
    Arc::new(message)
}
