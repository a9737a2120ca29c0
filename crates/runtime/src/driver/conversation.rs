//! What was said in an evaluation, as far as it is shown, kept from one question to the next.
//!
//! Evaluations grow at their ends, so a question costs what is new since the one before it, however long the evaluation is. The
//! result is that of [`shown`](super::question::shown), which looks at everything.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use backstitch_core::id::EvaluationId;
use backstitch_core::journal::{InnerMessage, Role};
use backstitch_core::machine::TurnState;
use backstitch_core::object::ObjectId;
use backstitch_core::session::Items;

use super::hydrate::media_of;

/// The messages of an evaluation, without answers that say nothing.
#[derive(Default)]
pub(super) struct Conversation {
    evaluation: Option<EvaluationId>,
    /// How many messages of the evaluation were examined, and the last of them.
    examined: usize,
    last: Option<Arc<InnerMessage>>,
    /// The answers that say something.
    spoken: HashSet<u64>,
    /// The answers that say nothing so far.
    silent: HashSet<u64>,
    shown: Items<InnerMessage>,
    media: Vec<ObjectId>,
}

impl Conversation {
    /// What is shown.
    pub(super) fn shown(&self) -> &Items<InnerMessage> {
        &self.shown
    }

    /// The objects that media in it lies in.
    pub(super) fn media(&self) -> &[ObjectId] {
        &self.media
    }

    /// Takes in all messages of an evaluation. What was taken in before is not examined again.
    pub(super) fn grow(&mut self, evaluation: EvaluationId, messages: &Items<InnerMessage>) {
        if self.evaluation != Some(evaluation) || !self.begins(messages) {
            *self = Self { evaluation: Some(evaluation), ..Self::default() };
        }
        let new: Vec<_> =
            (self.examined..messages.len()).filter_map(|place| messages.get(place)).cloned().collect();
        let mut answers: HashMap<u64, bool> = HashMap::new();
        for message in new.iter().filter(|message| message.role() == Role::Assistant) {
            *answers.entry(message.turn).or_default() |= !TurnState::is_silent([message]);
        }
        if answers.iter().any(|(turn, speaks)| *speaks && self.silent.contains(turn)) {
            // What was left out of that answer has its place among what is shown.
            *self = Self::default();
            return self.grow(evaluation, messages);
        }
        for (turn, speaks) in answers {
            if speaks {
                self.spoken.insert(turn);
            } else if !self.spoken.contains(&turn) {
                self.silent.insert(turn);
            }
        }
        (self.examined, self.last) = (messages.len(), messages.latest().cloned());
        for message in new {
            if message.role() != Role::Assistant || !self.silent.contains(&message.turn) {
                self.media.extend(media_of(&message.message));
                self.shown.extend([message]);
            }
        }
    }

    /// Whether what was examined is how these messages begin: an evaluation that went back has others in their places.
    fn begins(&self, messages: &Items<InnerMessage>) -> bool {
        let Some(last) = &self.last else { return true };
        let there = self.examined.checked_sub(1).and_then(|place| messages.get(place));
        there.is_some_and(|there| Arc::ptr_eq(there, last))
    }
}

#[cfg(test)]
mod tests {
    use backstitch_core::extra::Extra;
    use backstitch_core::id::IdStream;
    use backstitch_core::message::{MessageBuilder, RoleHint};
    use backstitch_core::time::FixedClock;
    use backstitch_core::view::Transcript;

    use super::*;

    /// What may be said: by whom, in which turn, in which words.
    const SAID: [(RoleHint, u64, &str); 5] = [
        (RoleHint::User, 0, "sew"),
        (RoleHint::Assistant, 1, " "),
        (RoleHint::Assistant, 1, "a hem"),
        (RoleHint::Assistant, 2, ""),
        (RoleHint::Assistant, 2, "a seam"),
    ];

    fn message(ids: &IdStream, evaluation: EvaluationId, sequence: u64, said: usize) -> Arc<InnerMessage> {
        let (hint, turn, text) = SAID[said];
        let mut builder = MessageBuilder::continue_step(1, ids);
        builder.policy("tailor".parse().unwrap()).role_hint(hint).add_text(text);
        Arc::new(InnerMessage {
            message_id: ids.next(),
            evaluation_id: evaluation,
            sequence,
            turn,
            prompt_ns: "tests".to_owned(),
            prompt_key: "tailor".to_owned(),
            created_at: ids.clock().now(),
            role: None,
            message: builder.to_message().unwrap(),
            provider: None,
            extra: Extra::default(),
        })
    }

    #[test]
    fn what_grows_piece_by_piece_is_what_looking_at_everything_gives() {
        const LENGTH: u32 = 4;
        let ids = IdStream::from_seed([0; 32], Arc::new(FixedClock::default()));
        let evaluation: EvaluationId = ids.next();
        for sequence in 0..SAID.len().pow(LENGTH) {
            let said = |place: u32| sequence / SAID.len().pow(place) % SAID.len();
            let messages: Vec<_> =
                (0..LENGTH).map(|place| message(&ids, evaluation, u64::from(place), said(place))).collect();
            let whole = |end: usize| Transcript::new(messages[..end].iter().cloned().collect());
            for cuts in 0..1_usize << (LENGTH - 1) {
                let mut conversation = Conversation::default();
                let ends = (1..messages.len()).filter(|end| cuts >> (end - 1) & 1 == 1);
                for end in ends.chain([messages.len()]) {
                    conversation.grow(evaluation, &whole(end).all().clone());
                    let expected = super::super::question::shown(None, &whole(end), &[], evaluation);
                    assert_eq!(*conversation.shown(), expected.messages, "{sequence} {cuts:b} {end}");
                }
            }
        }
    }

    #[test]
    fn an_evaluation_that_went_back_shows_nothing_of_what_it_went_back_from() {
        let ids = IdStream::from_seed([0; 32], Arc::new(FixedClock::default()));
        let (evaluation, other): (EvaluationId, EvaluationId) = (ids.next(), ids.next());
        let first = message(&ids, evaluation, 0, 0);
        let (old, new) = (message(&ids, evaluation, 1, 2), message(&ids, evaluation, 1, 4));
        let of = |messages: &[&Arc<InnerMessage>]| -> Items<InnerMessage> {
            messages.iter().map(|message| Arc::clone(message)).collect()
        };
        let mut conversation = Conversation::default();
        for messages in [of(&[&first, &old]), of(&[&first, &new]), of(&[&first])] {
            conversation.grow(evaluation, &messages);
            assert_eq!(*conversation.shown(), messages);
        }
        conversation.grow(other, &of(&[]));
        assert!(conversation.shown().is_empty());
    }
}
