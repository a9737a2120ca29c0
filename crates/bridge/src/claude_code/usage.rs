//! The requests of a run, each counted once.

use std::collections::{BTreeMap, HashSet};

use backstitch_runtime::ObservedRequest;

use crate::messages::{SYNTHETIC, Usage};
use crate::program::Program;

/// An answer that has not ended.
#[derive(Debug)]
struct OpenAnswer {
    id: String,
    model: String,
    usage: Usage,
}

/// The requests of a run. Answers of sub-agents arrive between those of the main conversation.
#[derive(Debug, Default)]
pub(super) struct Requests {
    /// By the call that started the sub-agent; none for the main conversation.
    open: BTreeMap<Option<String>, OpenAnswer>,
    /// Answers that were seen only as messages.
    seen: Vec<OpenAnswer>,
    reported: HashSet<String>,
}

impl Requests {
    pub(super) fn start(&mut self, of: Option<String>, id: String, model: String, usage: Usage) {
        self.open.insert(of, OpenAnswer { id, model, usage });
    }

    pub(super) fn update(&mut self, of: &Option<String>, usage: Usage) {
        if let Some(open) = self.open.get_mut(of) {
            open.usage.update(usage);
        }
    }

    /// Returns a request whose answer has ended.
    pub(super) fn stop(&mut self, of: &Option<String>) -> Option<ObservedRequest> {
        let ended = self.open.remove(of)?;
        self.report(ended)
    }

    /// Notes a message. Returns whether it begins an answer that no stream has announced.
    pub(super) fn message(&mut self, of: &Option<String>, id: &str, model: &str, usage: Usage) -> bool {
        if self.reported.contains(id) || self.open.get(of).is_some_and(|open| open.id == id) {
            return false;
        }
        if let Some(seen) = self.seen.iter_mut().find(|seen| seen.id == id) {
            seen.usage.update(usage);
            return false;
        }
        self.seen.push(OpenAnswer { id: id.to_owned(), model: model.to_owned(), usage });
        true
    }

    /// Returns the requests that were not reported yet.
    pub(super) fn rest(&mut self) -> Vec<ObservedRequest> {
        let open = std::mem::take(&mut self.open).into_values();
        let rest: Vec<_> = std::mem::take(&mut self.seen).into_iter().chain(open).collect();
        rest.into_iter().filter_map(|answer| self.report(answer)).collect()
    }

    fn report(&mut self, answer: OpenAnswer) -> Option<ObservedRequest> {
        let OpenAnswer { id, model, usage } = answer;
        if model == SYNTHETIC || !self.reported.insert(id.clone()) {
            return None;
        }
        let model = if model.is_empty() { "unknown".to_owned() } else { model };
        let provider = Program::ClaudeCode.provider().to_owned();
        Some(ObservedRequest { id, provider, model, usage: usage.amounts() })
    }
}
