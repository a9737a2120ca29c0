//! The answer that is arriving, as far as it came.
//!
//! What a policy has streamed is kept until its answer is recorded. If a person stops the answer, its text is recorded as an
//! answer of its own, which later requests show with a mark. If the attempt fails, its text is kept in a note, and the
//! request is repeated without it. Reasoning is only ever kept in notes, so it is never sent again.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use backstitch_core::id::EvaluationId;
use backstitch_core::journal::{Finish, InnerMessage, Note};
use backstitch_core::machine::TurnState;
use backstitch_core::message::{Content, Part};
use backstitch_core::ports::Delta;
use serde_json::json;

/// The topic of notes with what came of an answer that is not complete.
const TOPIC: &str = "unfinished";

/// Text behind an answer that a person stopped, in requests.
const MARK: &str = "[The user interrupted this answer here.]";

/// What has arrived of an answer.
#[derive(Debug, Default)]
pub(super) struct PartialAnswer {
    pub(super) text: String,
    pub(super) reasoning: String,
    /// Attempts that have failed before it.
    pub(super) failures: u32,
}

impl PartialAnswer {
    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty() && self.reasoning.is_empty()
    }

    /// Returns a note that keeps text and reasoning, or only the reasoning if the text is recorded as a message.
    pub(super) fn note(&self, evaluation: EvaluationId, turn: u64, keeps_text: bool) -> Option<Note> {
        let text = Some(&self.text).filter(|text| keeps_text && !text.is_empty());
        let reasoning = Some(&self.reasoning).filter(|reasoning| !reasoning.is_empty());
        if text.is_none() && reasoning.is_none() {
            return None;
        }
        let attempt = self.failures + 1;
        let data = json!({
            "evaluation_id": evaluation, "turn": turn, "attempt": attempt, "text": text, "reasoning": reasoning,
        });
        let size = text.map_or(0, |text| text.len()) + reasoning.map_or(0, |reasoning| reasoning.len());
        let words = format!("turn {turn}: {size} bytes of attempt {attempt} are kept and not sent again");
        Some(Note::new(TOPIC, words).with_data(data))
    }
}

/// The answer to the request that is being made. Clones share it.
#[derive(Clone, Default)]
pub(super) struct ArrivingAnswer(Arc<Mutex<PartialAnswer>>);

impl ArrivingAnswer {
    /// Starts with the first attempt of another request.
    pub(super) fn start(&self) {
        *self.lock() = PartialAnswer::default();
    }

    /// Adds a piece.
    pub(super) fn add(&self, delta: &Delta) {
        let mut partial = self.lock();
        match delta {
            Delta::Text(text) => partial.text.push_str(text),
            Delta::Reasoning(text) => partial.reasoning.push_str(text),
        }
    }

    /// Returns what has arrived, and starts with the next attempt of the same request.
    pub(super) fn end_attempt(&self) -> PartialAnswer {
        let mut partial = self.lock();
        let next = PartialAnswer { failures: partial.failures + 1, ..PartialAnswer::default() };
        std::mem::replace(&mut *partial, next)
    }

    fn lock(&self) -> MutexGuard<'_, PartialAnswer> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a message is the text of an answer that a person stopped.
pub(super) fn is_stopped(message: &Arc<InnerMessage>) -> bool {
    let finish = message.provider.as_ref().and_then(|sidecar| sidecar.finish.as_ref());
    finish == Some(&Finish::Interrupted) && !TurnState::is_silent([message])
}

/// Returns a message as requests show it. The text of an answer that a person stopped has a mark at its end.
pub(super) fn with_mark(message: &Arc<InnerMessage>) -> Arc<InnerMessage> {
    if !is_stopped(message) {
        return message.clone();
    }
    let mut marked = InnerMessage::clone(message);
    if let Content::Parts(parts) = &mut marked.message.content {
        parts.parts.push(Part::text(MARK));
    }
    Arc::new(marked)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_arrived_belongs_to_its_attempt() {
        let arriving = ArrivingAnswer::default();
        arriving.add(&Delta::Text("half".to_owned()));
        arriving.add(&Delta::Reasoning("hm".to_owned()));
        let first = arriving.end_attempt();
        assert_eq!((first.text.as_str(), first.reasoning.as_str(), first.failures), ("half", "hm", 0));
        let second = arriving.end_attempt();
        assert!(second.is_empty());
        assert_eq!(second.failures, 1);
        arriving.start();
        assert_eq!(arriving.end_attempt().failures, 0);
    }
}
