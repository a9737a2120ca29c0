//! What of the turns before a model is shown.
//!
//! A [`Compression`] is a strategy: a pure function from the turns so far ([`History`]) and what stays the same in an
//! evaluation ([`RenderContext`]) to the messages of the next request, with [`Statistics`] of what it left out. The same turns give
//! the same bytes. Nothing is compressed where it is stored: the journal keeps every turn in full, and each request is
//! rendered anew.
//!
//! | strategy | a request is |
//! |---|---|
//! | [`SingleUserCoalesced`] | the mission and one summary of all turns; failed turns as they were |
//! | [`Trim`] | the mission and the last turns, as they were |
//! | [`NoCompression`] | the mission and all turns, as they were: no compression |
//!
//! A history is folded turn by turn and keeps no text of its own, so a render looks at what it shows and at nothing else: it
//! costs as much after two thousand turns as after twenty.
//!
//! The same is done for agents that call tools by JSON in [`crate::transcript`].

mod coalesced;
mod config;
mod fence;
mod history;
mod lines;
mod looks;
mod options;
mod pairs;
mod rendered;
mod scene;
mod schema;
mod sections;
mod statistics;
mod strategy;

use std::fmt;
use std::sync::Arc;

use backstitch_lisp::Truncation;
use serde_json::Value as Json;

pub use coalesced::SingleUserCoalesced;
pub use config::{ConfigurationError, Registry};
pub(crate) use fence::push_foreign;
pub use history::History;
pub(crate) use lines::{collapsed, cut, one_line};
pub use options::{
    CoalescedOptions, DisplayOptions, Errors, FenceMode, FullOptions, Samples, ToolResults, TrimOptions,
};
pub use pairs::{NoCompression, Trim};
pub use rendered::{RenderedHistory, RenderedMessage, estimate_tokens};
pub use scene::RenderContext;
pub use statistics::{ShownCount, Statistics};
pub use strategy::{ConfiguredStrategy, Strategy};

use crate::turn::Turn;

/// A strategy: what of the turns before a model is shown.
pub trait Compression: fmt::Debug + Send + Sync {
    /// Its name, by which a configuration chooses it.
    fn name(&self) -> &'static str;

    /// The strategy with all of its options, as [`Registry::normalize`] reads it.
    fn configuration(&self) -> Json;

    /// What rendered a request: name, version and a digest of the options. Two renderers with the same text give the same
    /// bytes for the same turns.
    fn renderer(&self) -> String;

    /// How much a turn keeps of each value, for this strategy to show.
    fn sample(&self) -> Truncation;

    /// How much a turn keeps of the arguments of each call, for this strategy to show.
    fn arguments(&self) -> Truncation {
        Truncation::ARGUMENTS
    }

    /// The messages of the next request.
    fn render(&self, history: &History, scene: &RenderContext) -> RenderedHistory;

    /// The messages of the request after these turns, from scratch.
    fn render_turns(&self, turns: &[Turn], scene: &RenderContext) -> RenderedHistory {
        self.render(&turns.iter().cloned().map(Arc::new).collect(), scene)
    }
}

impl<O> Compression for ConfiguredStrategy<O>
where
    O: for<'a> Strategy<History<'a> = (&'a History, &'a RenderContext), Rendered = RenderedHistory>
        + AsRef<DisplayOptions>,
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

    fn sample(&self) -> Truncation {
        self.options().as_ref().sample()
    }

    fn arguments(&self) -> Truncation {
        self.options().as_ref().arguments()
    }

    fn render(&self, history: &History, scene: &RenderContext) -> RenderedHistory {
        self.options().render((history, scene))
    }
}

impl Registry<dyn Compression> {
    /// The strategies of the house: `single_user_coalesced`, which is the default, `trim` and `none`.
    pub fn standard() -> Self {
        Self::new(SingleUserCoalesced::NAME, NoCompression::NAME)
            .with(SingleUserCoalesced::NAME, |given| Ok(Arc::new(SingleUserCoalesced::read(given)?)))
            .with(Trim::NAME, |given| Ok(Arc::new(Trim::read(given)?)))
            .with(NoCompression::NAME, |given| Ok(Arc::new(NoCompression::read(given)?)))
    }

    /// The strategy for an agent that has so many turns. One that has a single turn has no history, and none is made of it.
    pub fn normalize_for(
        &self,
        given: &Json,
        max_turns: u64,
    ) -> Result<Arc<dyn Compression>, ConfigurationError> {
        self.normalize(given).map(|chosen| for_turns(chosen, max_turns))
    }
}

/// The strategy of an agent that has so many turns: one that has a single turn has no history, and none is made of it.
pub(crate) fn for_turns(chosen: Arc<dyn Compression>, max_turns: u64) -> Arc<dyn Compression> {
    if max_turns == 1 && chosen.name() != NoCompression::NAME {
        Arc::new(NoCompression::default())
    } else {
        chosen
    }
}
