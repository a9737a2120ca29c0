//! The answer that is arriving, as far as it came.
//!
//! What a policy has streamed is kept until its answer is recorded. If a person stops the answer, its text is recorded as an
//! answer of its own, which later requests show with a mark. If the attempt fails, its text is kept in notes, and the
//! request is repeated without it. Reasoning and unfinished calls are only ever kept in notes, so they are never sent again.
//!
//! While an answer arrives, new pieces of it are saved about once a second, so that the end of the process loses little of it.
//! These notes wait for no sync, and a failure to write them does not affect the request. They are cut between words, so that a
//! key is in one note, where a redaction finds it.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use backstitch_core::id::EvaluationId;
use backstitch_core::journal::{Finish, InnerMessage, Note};
use backstitch_core::machine::TurnState;
use backstitch_core::message::{Content, Part};
use backstitch_core::ports::Delta;
use tokio::sync::{Mutex as AsyncMutex, Notify};

use super::kept::KeptAttempt;
use crate::live::{DetachedTask, LiveSession};

/// The shortest time between two saves of an answer.
const BETWEEN_SAVES: Duration = Duration::from_secs(1);

/// The longest word in bytes that is saved only once it is complete.
const LONGEST_WORD: usize = 16 * 1024;

/// Text behind an answer that a person stopped, in requests.
const MARK: &str = "[The user interrupted this answer here.]";

/// What has arrived of an answer.
#[derive(Debug, Default)]
pub(super) struct PartialAnswer {
    pub(super) kept: KeptAttempt,
    /// Lengths of text, reasoning and calls that notes hold already.
    saved: [usize; 3],
}

impl PartialAnswer {
    fn of_attempt(turn: u64, attempt: u32) -> Self {
        let kept = KeptAttempt { turn, attempt, ..KeptAttempt::default() };
        Self { kept, saved: [0; 3] }
    }

    /// Returns a note with what no note holds yet, without the text if that is recorded as a message.
    pub(super) fn note(&self, evaluation: EvaluationId, keeps_text: bool) -> Option<Note> {
        let mut rest = self.piece(self.texts().map(str::len));
        if !keeps_text {
            rest.text.clear();
        }
        rest.note(evaluation)
    }

    fn texts(&self) -> [&str; 3] {
        [&self.kept.text, &self.kept.reasoning, &self.kept.calls]
    }

    /// Returns what no note holds yet, up to these lengths.
    fn piece(&self, until: [usize; 3]) -> KeptAttempt {
        let cut = |place: usize| self.texts()[place][self.saved[place]..until[place]].to_owned();
        let KeptAttempt { turn, attempt, .. } = self.kept;
        KeptAttempt { turn, attempt, text: cut(0), reasoning: cut(1), calls: cut(2) }
    }

    /// Returns the lengths up to which words are complete. A key is one word: in two notes it could not be redacted.
    fn complete_words(&self) -> [usize; 3] {
        std::array::from_fn(|place| {
            let (text, saved) = (self.texts()[place], self.saved[place]);
            let rest = text[saved..].trim_end_matches(|character: char| !character.is_whitespace());
            let complete = saved + rest.len();
            if text.len() - complete > LONGEST_WORD { text.len() } else { complete }
        })
    }
}

/// The answer to the request that is being made. Clones share it.
#[derive(Clone, Default)]
pub(super) struct ArrivingAnswer {
    partial: Arc<Mutex<PartialAnswer>>,
    arrived: Arc<Notify>,
    /// Locked during a save, which completes even if its future is dropped: until then it is not known what notes hold.
    saving: Arc<AsyncMutex<()>>,
}

impl ArrivingAnswer {
    /// Starts with the first attempt of another request.
    pub(super) async fn start(&self, turn: u64) {
        let _saved = self.saving.lock().await;
        *self.lock() = PartialAnswer::of_attempt(turn, 1);
    }

    /// Adds a piece.
    pub(super) fn add(&self, delta: &Delta) {
        let mut partial = self.lock();
        match delta {
            Delta::Text(text) => partial.kept.text.push_str(text),
            Delta::Reasoning(text) => partial.kept.reasoning.push_str(text),
            Delta::Call(text) => partial.kept.calls.push_str(text),
        }
        drop(partial);
        self.arrived.notify_one();
    }

    /// Returns what has arrived, and starts with the next attempt of the same request.
    pub(super) async fn end_attempt(&self) -> PartialAnswer {
        let _saved = self.saving.lock().await;
        let mut partial = self.lock();
        let next = PartialAnswer::of_attempt(partial.kept.turn, partial.kept.attempt + 1);
        std::mem::replace(&mut *partial, next)
    }

    /// Saves new pieces of the answer, as long as it is polled. After a failure nothing more of the attempt is saved.
    pub(super) async fn save(&self, live: &Arc<LiveSession>, evaluation: EvaluationId) -> Infallible {
        loop {
            self.arrived.notified().await;
            tokio::time::sleep(BETWEEN_SAVES).await;
            let saving = self.saving.clone().lock_owned().await;
            let Some((note, before)) = self.take_unsaved(evaluation) else { continue };
            let (arriving, session) = (self.clone(), live.clone());
            let saved = DetachedTask::plain(async move {
                let saved = session.record_unsynced(vec![note.into()]).await;
                if !matches!(saved, Ok(true)) {
                    arriving.lock().saved = before;
                }
                drop(saving);
                saved
            });
            match saved.await {
                Ok(true) => {}
                Ok(false) => self.arrived.notify_one(),
                Err(error) => {
                    let session = live.id();
                    tracing::warn!(%session, %error, "the answer could not be saved while it arrived");
                    return std::future::pending().await;
                }
            }
        }
    }

    /// Returns a note with the words that no note holds yet, and the lengths that were saved before. It counts as saved from here
    /// on.
    fn take_unsaved(&self, evaluation: EvaluationId) -> Option<(Note, [usize; 3])> {
        let mut partial = self.lock();
        let until = partial.complete_words();
        let note = partial.piece(until).note(evaluation)?;
        Some((note, std::mem::replace(&mut partial.saved, until)))
    }

    fn lock(&self) -> MutexGuard<'_, PartialAnswer> {
        self.partial.lock().unwrap_or_else(PoisonError::into_inner)
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

    #[tokio::test]
    async fn what_arrived_belongs_to_its_attempt() {
        let arriving = ArrivingAnswer::default();
        arriving.start(3).await;
        arriving.add(&Delta::Text("half".to_owned()));
        arriving.add(&Delta::Reasoning("hm".to_owned()));
        arriving.add(&Delta::Call("\nread_file {".to_owned()));
        let first = arriving.end_attempt().await.kept;
        let expected = KeptAttempt {
            turn: 3,
            attempt: 1,
            text: "half".to_owned(),
            reasoning: "hm".to_owned(),
            calls: "\nread_file {".to_owned(),
        };
        assert_eq!(first, expected);
        let second = arriving.end_attempt().await.kept;
        assert!(second.is_empty());
        assert_eq!((second.turn, second.attempt), (3, 2));
        arriving.start(4).await;
        assert_eq!(arriving.end_attempt().await.kept.attempt, 1);
    }

    #[tokio::test]
    async fn what_was_saved_is_not_noted_again() {
        let arriving = ArrivingAnswer::default();
        arriving.start(1).await;
        let evaluation = "0198a7c0-5d6f-7a3b-9c1d-2e4f6a8b0c1d".parse().unwrap();
        arriving.add(&Delta::Text("one ".to_owned()));
        let (saved, _) = arriving.take_unsaved(evaluation).unwrap();
        assert!(serde_json::to_string(&saved).unwrap().contains("one "));
        assert_eq!(arriving.take_unsaved(evaluation), None);
        arriving.add(&Delta::Text("two".to_owned()));
        let rest = arriving.end_attempt().await.note(evaluation, true).unwrap();
        let rest = serde_json::to_string(&rest).unwrap();
        assert!(rest.contains("two") && !rest.contains("one"), "{rest}");
    }

    #[tokio::test]
    async fn a_word_is_saved_as_a_whole() {
        let arriving = ArrivingAnswer::default();
        arriving.start(1).await;
        let evaluation = "0198a7c0-5d6f-7a3b-9c1d-2e4f6a8b0c1d".parse().unwrap();
        let text = |note: Note| serde_json::to_string(&note).unwrap();
        let save = || arriving.take_unsaved(evaluation).map(|(note, _)| text(note));
        arriving.add(&Delta::Text("the käy is hunter2".to_owned()));
        let saved = save().unwrap();
        assert!(saved.contains("the käy is ") && !saved.contains("hunter2"), "{saved}");
        arriving.add(&Delta::Text("-leaked".to_owned()));
        assert_eq!(save(), None);
        arriving.add(&Delta::Text(". Then".to_owned()));
        assert!(save().unwrap().contains("hunter2-leaked. "));
        arriving.add(&Delta::Call("x".repeat(LONGEST_WORD + 1)));
        assert!(save().unwrap().contains("xxx"));
    }
}
