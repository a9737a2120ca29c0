//! A conversation with placeholders for old results, from one request to the next.
//!
//! [`Elide`](super::Elide) renders a transcript from scratch, which takes longer the longer it is. Results that are elided stay
//! elided, so the next request only differs in the messages that are new and in the results that have become old since the last one.

use std::collections::BTreeMap;
use std::sync::Arc;

use backstitch_core::journal::InnerMessage;

use super::{ElideOptions, TranscriptHistory};

/// The results of a conversation that may still be elided.
#[derive(Debug, Clone)]
pub struct ElidedHistory {
    options: ElideOptions,
    history: TranscriptHistory,
    /// Long results that are still shown, by the number of their answer. Each has its place among the shown messages.
    waiting: BTreeMap<u64, Vec<(usize, Arc<InnerMessage>)>>,
    count: usize,
}

impl ElidedHistory {
    /// Creates a history without messages.
    pub fn new(options: ElideOptions) -> Self {
        Self { options, history: TranscriptHistory::new(), waiting: BTreeMap::new(), count: 0 }
    }

    /// The options of the strategy.
    pub fn options(&self) -> &ElideOptions {
        &self.options
    }

    /// The number of results that are elided.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Adds the next message, with its place among those that are shown; `None` for one that is not.
    pub fn push(&mut self, message: &Arc<InnerMessage>, place: Option<usize>) {
        self.history.push(message.clone());
        let Some(place) = place.filter(|_| self.options.is_long(message)) else { return };
        if let Some(turn) = self.history.turn_of(message) {
            self.waiting.entry(turn).or_default().push((place, message.clone()));
        }
    }

    /// Returns the placeholders of the results that have become old since the last call, each with its place among the
    /// shown messages.
    pub fn elide(&mut self) -> Vec<(usize, Arc<InnerMessage>)> {
        let end = self.options.end_of_old(&self.history);
        let open = self.history.open();
        let old: Vec<u64> =
            self.waiting.range(..end).map(|(turn, _)| *turn).filter(|turn| !open.contains(turn)).collect();
        let results = old.into_iter().filter_map(|turn| self.waiting.remove(&turn)).flatten();
        let elided: Vec<_> =
            results.filter_map(|(place, message)| Some((place, self.options.elided(&message)?))).collect();
        self.count += elided.len();
        elided
    }
}
