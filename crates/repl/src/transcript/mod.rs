//! Compression of transcripts for requests of agents that call tools by JSON.
//!
//! A [`TranscriptCompression`] is a pure function from the messages of one evaluation ([`TranscriptHistory`])
//! to fewer or smaller ones, with [`TranscriptStatistics`] of what it left out. The journal keeps them all. A
//! history is folded message by message, so a render reads only what it shows.
//!
//! Providers refuse a call without its result and a result without its call, and some refuse reasoning
//! without the output that followed it. So a transcript is cut between blocks only: an answer of the model
//! with all of its calls and their results. Every strategy guarantees:
//!
//! - messages before the first answer stay in full: the system prompt and the first user message;
//! - later user messages stay too, since they are short and contain instructions;
//! - an answer with a pending call stays, with its whole block;
//! - of an answer that stays, its text, its calls and the data of its provider (raw payloads, reasoning,
//!   signatures) stay byte for byte; of an answer that is dropped, all of these are dropped.
//!
//! | strategy | leaves out |
//! |---|---|
//! | [`Trim`] | the oldest answers, with their calls and results |
//! | [`Elide`] | the text of old and large results, which can be recalled |
//! | [`CutStrategy`] | the text of old results, then old answers, at recorded [cuts](Cut) that stay |
//! | [`SummaryStrategy`] | old answers, in whose place a summary is shown, at recorded [cuts](Cut) |
//! | [`KeepAll`] | nothing |
//!
//! Due to the rules of providers, an elided result still answers its call, with the same id and name, at the
//! same place, so that every pair is complete; and the arguments of calls are never shortened, because they
//! are part of the raw payload that is sent back to the provider that signed it.

mod cut;
mod elide;
mod elided;
mod head;
mod history;
mod machine;
mod plan;
mod recorded;
mod statistics;
mod summary;
mod trim;
mod weight;

use std::fmt;
use std::sync::Arc;

use backstitch_core::journal::InnerMessage;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

pub use cut::{ConversationOrder, ConversationPoint, Cut, CutSummary, LatestCuts};
pub use elide::{Elide, ElideOptions};
pub use elided::ElidedHistory;
pub use head::CutHead;
pub use history::TranscriptHistory;
pub use machine::CompressedMachines;
pub use plan::{CutPlanner, CutRules, SummaryRules};
pub use recorded::{CutOptions, CutStrategy, SummaryOptions, SummaryStrategy};
pub use statistics::TranscriptStatistics;
pub use summary::summary_text;
pub use trim::{Trim, TrimOptions};
pub(crate) use weight::Weight;

use crate::compression::{ConfiguredStrategy, Registry, Strategy};

/// Returns the approximate number of tokens that messages have in a request.
pub fn estimated_tokens<'a>(messages: impl Iterator<Item = &'a Arc<InnerMessage>>) -> u64 {
    Weight::tokens(estimated_bytes(messages))
}

/// Returns the approximate number of bytes that messages have in a request, of which four are a token. The sum of
/// two estimates is the estimate of both.
pub fn estimated_bytes<'a>(messages: impl Iterator<Item = &'a Arc<InnerMessage>>) -> u64 {
    messages.map(|message| Weight::of(message)).sum()
}

/// The messages of a request, with statistics.
#[derive(Debug, Clone, PartialEq)]
pub struct RenderedTranscript {
    /// The messages, in order. Complete ones are the original messages, not copies.
    pub messages: Vec<Arc<InnerMessage>>,
    /// What was shown and what was left out.
    pub statistics: TranscriptStatistics,
}

/// A strategy that selects what a model is shown of a transcript.
pub trait TranscriptCompression: fmt::Debug + Send + Sync {
    /// The name in configurations.
    fn name(&self) -> &'static str;

    /// The strategy with all of its options, as [`Registry::normalize`] parses it.
    fn configuration(&self) -> Json;

    /// Identifies the renderer of a request: name, version and a digest of the options.
    fn renderer(&self) -> String;

    /// The rules of the cuts that it records in the session, if it does so.
    fn cut_rules(&self) -> Option<CutRules> {
        None
    }

    /// The options of [`Elide`], if that is what it does. Then requests are rendered by an [`ElidedHistory`].
    fn elides(&self) -> Option<&ElideOptions> {
        None
    }

    /// Renders the messages of the next request.
    fn render(&self, history: &TranscriptHistory) -> RenderedTranscript;

    /// Renders the request after these messages, which are all of one conversation, from scratch.
    fn render_messages(&self, messages: &[Arc<InnerMessage>]) -> RenderedTranscript {
        self.render(&messages.iter().cloned().collect())
    }
}

/// A strategy for transcripts, as a function of its options.
pub trait TranscriptStrategy:
    for<'a> Strategy<History<'a> = &'a TranscriptHistory, Rendered = RenderedTranscript>
{
    /// The rules of the cuts that it records in the session, if it does so.
    fn cut_rules(&self) -> Option<CutRules> {
        None
    }

    /// The options of [`Elide`], if that is what it does.
    fn elides(&self) -> Option<&ElideOptions> {
        None
    }
}

impl<O: TranscriptStrategy> TranscriptCompression for ConfiguredStrategy<O> {
    fn name(&self) -> &'static str {
        O::NAME
    }

    fn configuration(&self) -> Json {
        self.to_configuration()
    }

    fn renderer(&self) -> String {
        self.renderer_name()
    }

    fn cut_rules(&self) -> Option<CutRules> {
        self.options().cut_rules()
    }

    fn elides(&self) -> Option<&ElideOptions> {
        self.options().elides()
    }

    fn render(&self, history: &TranscriptHistory) -> RenderedTranscript {
        self.options().render(history)
    }
}

/// No compression.
pub type KeepAll = ConfiguredStrategy<KeepOptions>;

/// The options of [`KeepAll`]: none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeepOptions {}

impl Strategy for KeepOptions {
    const NAME: &'static str = "none";
    const VERSION: u32 = 1;
    type History<'a> = &'a TranscriptHistory;
    type Rendered = RenderedTranscript;

    fn render(&self, history: &TranscriptHistory) -> RenderedTranscript {
        let messages: Vec<_> = history.messages().cloned().collect();
        let statistics = TranscriptStatistics::of(Self::NAME, history, &messages, 0);
        RenderedTranscript { messages, statistics }
    }
}

impl TranscriptStrategy for KeepOptions {}

impl Registry<dyn TranscriptCompression> {
    /// The built-in strategies: `trim`, which is the default, `elide`, `cut`, `summary` and `none`.
    pub fn standard() -> Self {
        Self::new(Trim::NAME, KeepAll::NAME)
            .with(Trim::NAME, |given| Ok(Arc::new(Trim::read(given)?)))
            .with(Elide::NAME, |given| Ok(Arc::new(Elide::read(given)?)))
            .with(CutStrategy::NAME, |given| Ok(Arc::new(CutStrategy::read(given)?)))
            .with(SummaryStrategy::NAME, |given| Ok(Arc::new(SummaryStrategy::read(given)?)))
            .with(KeepAll::NAME, |given| Ok(Arc::new(KeepAll::read(given)?)))
    }
}
