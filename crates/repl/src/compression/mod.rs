//! Compression of the history of a Lisp agent for requests.
//!
//! A [`Compression`] is a strategy: a pure function from the turns so far ([`History`]) and the constant part
//! of an evaluation ([`RenderContext`]) to the messages of the next request, with [`Statistics`] of what it
//! left out. Equal turns give equal bytes. Stored data is not compressed: the journal keeps every turn in
//! full, and each request is rendered anew.
//!
//! | strategy | a request is |
//! |---|---|
//! | [`SingleUserCoalesced`] | the mission and one summary of all turns; failed turns unchanged |
//! | [`Trim`] | the mission and the last turns, unchanged |
//! | [`NoCompression`] | the mission and all turns, unchanged: no compression |
//!
//! A history is folded turn by turn and indexed by position, so a render reads only what it shows: it
//! costs as much after two thousand turns as after twenty.
//!
//! [`crate::transcript`] does the same for agents that call tools by JSON.

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
pub(crate) use lines::one_line;
pub use options::{
    CoalescedOptions, DisplayOptions, Errors, FenceMode, FullOptions, Samples, ToolResults, TrimOptions,
};
pub use pairs::{NoCompression, Trim};
pub use rendered::{RenderedHistory, RenderedMessage, estimate_tokens};
pub use scene::RenderContext;
pub use statistics::{ShownCount, Statistics};
pub use strategy::{ConfiguredStrategy, Strategy};

use crate::turn::Turn;

/// A strategy that selects what a model is shown of the turns.
pub trait Compression: fmt::Debug + Send + Sync {
    /// The name in configurations.
    fn name(&self) -> &'static str;

    /// The strategy with all of its options, as [`Registry::normalize`] parses it.
    fn configuration(&self) -> Json;

    /// Identifies the renderer of a request: name, version and a digest of the options. Equal texts mean
    /// equal bytes for equal turns.
    fn renderer(&self) -> String;

    /// How much of each value a turn has to keep for this strategy.
    fn sample(&self) -> Truncation;

    /// How much of the arguments of each call a turn has to keep for this strategy.
    fn arguments(&self) -> Truncation {
        Truncation::ARGUMENTS
    }

    /// Renders the messages of the next request.
    fn render(&self, history: &History, scene: &RenderContext) -> RenderedHistory;

    /// Renders the messages of the request after these turns, from scratch.
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
    /// The built-in strategies: `single_user_coalesced`, which is the default, `trim` and `none`.
    pub fn standard() -> Self {
        Self::new(SingleUserCoalesced::NAME, NoCompression::NAME)
            .with(SingleUserCoalesced::NAME, |given| Ok(Arc::new(SingleUserCoalesced::read(given)?)))
            .with(Trim::NAME, |given| Ok(Arc::new(Trim::read(given)?)))
            .with(NoCompression::NAME, |given| Ok(Arc::new(NoCompression::read(given)?)))
    }

    /// The strategy for an agent with this number of turns. With a single turn there is no history, and no
    /// compression.
    pub fn normalize_for(
        &self,
        given: &Json,
        max_turns: u64,
    ) -> Result<Arc<dyn Compression>, ConfigurationError> {
        self.normalize(given).map(|chosen| for_turns(chosen, max_turns))
    }
}

/// The strategy for an agent with this number of turns. With a single turn there is no history, and no
/// compression.
pub(crate) fn for_turns(chosen: Arc<dyn Compression>, max_turns: u64) -> Arc<dyn Compression> {
    if max_turns == 1 && chosen.name() != NoCompression::NAME {
        Arc::new(NoCompression::default())
    } else {
        chosen
    }
}
