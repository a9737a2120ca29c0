//! The last answers, and what was said before the first.

use std::collections::HashSet;
use std::sync::Arc;

use backstitch_core::journal::InnerMessage;
use backstitch_core::message::{Content, Part};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::{
    Block, Blocks, RenderedTranscript, TranscriptCompression, TranscriptStatistics, Weight, configuration,
    renderer,
};
use crate::steps::{first, rounded_cut};

/// The last answers with their calls and results.
///
/// It leaves out several answers at once rather than one with each request, so that most requests begin as the one before
/// them did and can be cached. What was left out is said at the end of the user's first words.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trim {
    options: TrimOptions,
}

/// The options of [`Trim`]. The stricter of the two pressures counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TrimOptions {
    /// How many answers are kept at most; without a number, as many as there are.
    pub turns: Option<usize>,
    /// How many tokens the whole request may have, by an estimate. The last answer is kept whatever it has.
    pub tokens: Option<u64>,
    /// Whether it is said that something was left out.
    pub note: bool,
}

impl Default for TrimOptions {
    fn default() -> Self {
        Self { turns: Some(20), tokens: None, note: true }
    }
}

impl Trim {
    /// Its name.
    pub const NAME: &'static str = "trim";
    /// The version of what it makes.
    const VERSION: u32 = 1;

    /// The strategy with these options.
    pub fn new(options: TrimOptions) -> Self {
        Self { options }
    }

    /// How many blocks are to be left out.
    fn cut(&self, messages: &[Arc<InnerMessage>], blocks: &[Block]) -> usize {
        let mut cut = 0;
        if let Some(turns) = self.options.turns.map(|turns| turns.max(1)) {
            cut = rounded_cut(blocks.len(), blocks.len().saturating_sub(turns), turns);
        }
        if let Some(tokens) = self.options.tokens {
            let weight =
                |places: &[usize]| places.iter().map(|place| Weight::of(&messages[*place])).sum::<u64>();
            let sizes: Vec<u64> = blocks.iter().map(|block| weight(&block.places)).collect();
            let all: u64 = messages.iter().map(|message| Weight::of(message)).sum();
            // What is left once the blocks before each one are gone.
            let mut left = vec![all];
            for size in &sizes {
                left.push(left[left.len() - 1] - size);
            }
            let least = first(0..blocks.len(), |from| Weight::tokens(left[from]) <= tokens);
            cut = cut.max(rounded_cut(blocks.len(), least, blocks.len() - least));
        }
        cut
    }
}

impl TranscriptCompression for Trim {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn configuration(&self) -> Json {
        configuration(Self::NAME, &self.options)
    }

    fn renderer(&self) -> String {
        renderer(Self::NAME, Self::VERSION, &self.options)
    }

    fn render(&self, messages: &[Arc<InnerMessage>]) -> RenderedTranscript {
        let blocks = Blocks::of(messages);
        let cut = self.cut(messages, blocks.all());
        let closed = |block: &&Block| !block.open && block.turn > 0;
        let left_out: Vec<&Block> = blocks.all()[..cut].iter().filter(closed).collect();
        let gone: HashSet<usize> = left_out.iter().flat_map(|block| block.places.iter().copied()).collect();
        let note =
            left_out.first().zip(left_out.last()).filter(|_| self.options.note).map(|(first, last)| {
                let (first, last, count) = (first.turn, last.turn, left_out.len());
                match count {
                    1 => format!("[Answer {first}, with its calls and results, is not shown.]"),
                    _ => format!(
                        "[{count} answers, {first} to {last}, with their calls and results, are not shown.]"
                    ),
                }
            });
        let kept = messages.iter().enumerate().filter(|(place, _)| !gone.contains(place));
        let kept = kept.map(|(place, message)| match &note {
            Some(note) if Some(place) == blocks.first_user() => with_note(message, note),
            _ => message.clone(),
        });
        let kept: Vec<Arc<InnerMessage>> = kept.collect();
        let statistics = TranscriptStatistics::of(Self::NAME, messages, &kept, 0);
        RenderedTranscript { messages: kept, statistics }
    }
}

/// The message, with a part that says something more at its end.
fn with_note(message: &Arc<InnerMessage>, note: &str) -> Arc<InnerMessage> {
    let mut message = InnerMessage::clone(message);
    if let Content::Parts(parts) = &mut message.message.content {
        parts.parts.push(Part::text(note));
    }
    Arc::new(message)
}
