//! What of a transcript a model is shown, for agents that call tools by JSON.
//!
//! A [`TranscriptCompression`] is a pure function from the messages of one evaluation ([`TranscriptHistory`]) to fewer or smaller
//! ones, with [`TranscriptStatistics`] of what it left out. The journal keeps them all. A history is folded message by message,
//! so a render looks at what it shows and at nothing else.
//!
//! Providers refuse a call without its result and a result without its call, and some refuse reasoning without what it led
//! to. So a transcript is cut between blocks only: an answer of the model with all of its calls and their results.
//! Whatever a strategy does,
//!
//! - what was said before the first answer stays, in full: the system prompt and the first words of the user;
//! - what people say later stays too, since it is short and instructs;
//! - an answer with a call that has no result yet stays, with all that belongs to it;
//! - of an answer that stays, its words, its calls and what only its provider understands (raw payloads, reasoning,
//!   signatures) stay as they are, byte for byte; of one that goes, all of that goes with it.
//!
//! | strategy | leaves out |
//! |---|---|
//! | [`Trim`] | the oldest answers, with their calls and results |
//! | [`Elide`] | the text of old and large results, which can be recalled |
//! | [`KeepAll`] | nothing |
//!
//! What provider rules ask of this: an elided result still answers its call, under the same id and name, in the same place, so
//! every pair is whole; and the arguments of calls are never shortened, because they are part of the raw payload that goes
//! back to the provider that signed it.

mod elide;
mod history;
mod machine;
mod statistics;
mod trim;
mod weight;

use std::fmt;
use std::sync::Arc;

use backstitch_core::journal::InnerMessage;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

pub use elide::{Elide, ElideOptions};
pub use history::TranscriptHistory;
pub use machine::CompressedMachines;
pub use statistics::TranscriptStatistics;
pub use trim::{Trim, TrimOptions};
pub(crate) use weight::Weight;

use crate::compression::{ConfiguredStrategy, Registry, Strategy};

/// Messages of a request, and what is not in them.
#[derive(Debug, Clone, PartialEq)]
pub struct RenderedTranscript {
    /// The messages, in the order in which they were said. Those that are whole are the very ones that were given.
    pub messages: Vec<Arc<InnerMessage>>,
    /// What was left out.
    pub statistics: TranscriptStatistics,
}

/// A strategy: what of a transcript a model is shown.
pub trait TranscriptCompression: fmt::Debug + Send + Sync {
    /// Its name, by which a configuration chooses it.
    fn name(&self) -> &'static str;

    /// The strategy with all of its options, as [`Registry::normalize`] reads it.
    fn configuration(&self) -> Json;

    /// What rendered a request: name, version and a digest of the options.
    fn renderer(&self) -> String;

    /// The messages of the next request.
    fn render(&self, history: &TranscriptHistory) -> RenderedTranscript;

    /// The messages of the request after these, which are all of one conversation, from scratch.
    fn render_messages(&self, messages: &[Arc<InnerMessage>]) -> RenderedTranscript {
        self.render(&messages.iter().cloned().collect())
    }
}

impl<O> TranscriptCompression for ConfiguredStrategy<O>
where
    O: for<'a> Strategy<History<'a> = &'a TranscriptHistory, Rendered = RenderedTranscript>,
{
    fn name(&self) -> &'static str {
        O::NAME
    }

    fn configuration(&self) -> Json {
        self.to_configuration()
    }

    fn renderer(&self) -> String {
        self.renderer_name()
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

impl Registry<dyn TranscriptCompression> {
    /// The strategies of the house: `trim`, which is the default, `elide` and `none`.
    pub fn standard() -> Self {
        Self::new(Trim::NAME, KeepAll::NAME)
            .with(Trim::NAME, |given| Ok(Arc::new(Trim::read(given)?)))
            .with(Elide::NAME, |given| Ok(Arc::new(Elide::read(given)?)))
            .with(KeepAll::NAME, |given| Ok(Arc::new(KeepAll::read(given)?)))
    }
}
