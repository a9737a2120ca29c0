//! The visible messages of a conversation, cached from one request to the next.
//!
//! Evaluations grow at their ends, and the evaluations that they follow have ended. So a request costs time
//! only for messages that are new since the previous one, however long the conversation is. The result equals
//! that of [`without_silent`](super::question::without_silent), which examines all messages.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use backstitch_core::id::EvaluationId;
use backstitch_core::journal::{InnerMessage, Role};
use backstitch_core::machine::{TurnState, conversation};
use backstitch_core::object::ObjectId;
use backstitch_core::session::Items;
use backstitch_core::view::Transcript;
use backstitch_repl::transcript::{ConversationOrder, Cut, ElideOptions, ElidedHistory, estimated_bytes};

use super::arriving::with_mark;
use super::hydrate::media_of;

/// The messages of an evaluation, after those of the evaluations that it follows, without silent answers.
#[derive(Default)]
pub(super) struct Conversation {
    evaluation: Option<EvaluationId>,
    /// How many messages of the evaluation itself were examined, and the last of them.
    examined: usize,
    last: Option<Arc<InnerMessage>>,
    /// Turns whose answers are not silent.
    spoken: HashSet<Turn>,
    /// Turns whose answers are silent so far.
    silent: HashSet<Turn>,
    /// All messages, silent answers among them.
    all: Items<InnerMessage>,
    pub(super) shown: Items<InnerMessage>,
    /// The objects that hold its media.
    pub(super) media: Vec<ObjectId>,
    /// The estimated size of the messages in a request.
    pub(super) bytes: u64,
    /// The order of its messages.
    pub(super) order: ConversationOrder,
    /// What the latest cut shows of it.
    cut: Option<CutConversation>,
    /// What a strategy that elides old results shows of it.
    elided: Option<ElidedConversation>,
}

/// A conversation as a cut shows it. Messages after the cut are appended, so that a request costs what is new.
struct CutConversation {
    cut: Arc<Cut>,
    /// How many messages of the conversation were examined.
    examined: usize,
    shown: ShownConversation,
}

/// A conversation with placeholders for old results, in which a request costs what is new, too.
struct ElidedConversation {
    history: ElidedHistory,
    /// How many of all messages were examined.
    examined: usize,
    shown: ShownConversation,
}

/// The messages of a conversation for a request.
#[derive(Clone, Default)]
pub(super) struct ShownConversation {
    pub(super) messages: Items<InnerMessage>,
    /// The objects that hold its media.
    pub(super) media: Vec<ObjectId>,
    /// The estimated size of the messages.
    pub(super) bytes: u64,
    /// Descriptions of what is left out, a line each.
    pub(super) left_out: Vec<String>,
}

impl ShownConversation {
    fn push(&mut self, message: Arc<InnerMessage>) {
        self.media.extend(media_of(&message.message));
        self.bytes += estimated_bytes(std::iter::once(&message));
        self.messages.extend([message]);
    }

    fn replace(&mut self, place: usize, message: Arc<InnerMessage>) {
        let Some(before) = self.messages.get(place) else { return };
        self.bytes -= estimated_bytes(std::iter::once(before));
        self.bytes += estimated_bytes(std::iter::once(&message));
        for object in media_of(&before.message) {
            if let Some(at) = self.media.iter().position(|known| *known == object) {
                self.media.remove(at);
            }
        }
        self.media.extend(media_of(&message.message));
        self.messages.replace(place, message);
    }
}

/// A turn of any evaluation of the conversation.
type Turn = (EvaluationId, u64);

impl Conversation {
    /// Adds all messages of a conversation that ends with an evaluation. Messages that were added before are
    /// not examined again. `followed` is only called for a conversation that is new here.
    pub(super) fn grow(
        &mut self,
        transcript: &Transcript,
        evaluation: EvaluationId,
        followed: impl FnOnce() -> Vec<EvaluationId>,
    ) {
        let own = transcript.of_evaluation(evaluation);
        if self.evaluation == Some(evaluation) && self.begins(&own) {
            let new = (self.examined..own.len()).filter_map(|place| own.get(place)).cloned().collect();
            if self.add(new) {
                (self.examined, self.last) = (own.len(), own.latest().cloned());
                return;
            }
        }
        let followed = followed();
        *self = Self {
            evaluation: Some(evaluation),
            examined: own.len(),
            last: own.latest().cloned(),
            order: ConversationOrder::new(&followed, evaluation),
            ..Self::default()
        };
        self.add(conversation(transcript, &followed, evaluation));
    }

    /// Returns the whole conversation, or what a cut shows of it.
    pub(super) fn shown_by(&mut self, cut: Option<&Arc<Cut>>) -> ShownConversation {
        let Some(cut) = cut.filter(|cut| cut.leaves_out()) else {
            let (messages, media, bytes) = (self.shown.clone(), self.media.clone(), self.bytes);
            return ShownConversation { messages, media, bytes, left_out: Vec::new() };
        };
        let known = self.cut.take().filter(|known| known.cut == *cut);
        let mut known = known.unwrap_or_else(|| {
            let head = cut.render_head(self.shown.iter(), &self.order);
            let mut shown = ShownConversation { left_out: head.left_out(), ..ShownConversation::default() };
            head.messages.into_iter().for_each(|message| shown.push(message));
            CutConversation { cut: cut.clone(), examined: head.count, shown }
        });
        while let Some(message) = self.shown.get(known.examined) {
            known.shown.push(message.clone());
            known.examined += 1;
        }
        self.cut.insert(known).shown.clone()
    }

    /// Returns the whole conversation, with placeholders for old results.
    pub(super) fn elided_by(&mut self, options: &ElideOptions) -> ShownConversation {
        let known = self.elided.take().filter(|known| known.history.options() == options);
        let mut known = known.unwrap_or_else(|| ElidedConversation {
            history: ElidedHistory::new(options.clone()),
            examined: 0,
            shown: ShownConversation::default(),
        });
        while let Some(message) = self.all.get(known.examined) {
            let is_shown = self.is_shown(message);
            known.history.push(message, is_shown.then_some(known.shown.messages.len()));
            if is_shown {
                known.shown.push(with_mark(message));
            }
            known.examined += 1;
        }
        for (place, placeholder) in known.history.elide() {
            known.shown.replace(place, placeholder);
        }
        let count = known.history.count();
        known.shown.left_out = (count > 0).then(|| format!("{count} results")).into_iter().collect();
        self.elided.insert(known).shown.clone()
    }

    fn is_shown(&self, message: &InnerMessage) -> bool {
        message.role() != Role::Assistant || !self.silent.contains(&turn_of(message))
    }

    /// Appends messages. Returns false, and appends nothing, if an answer that was left out as silent turns
    /// out not to be: its place is among the visible messages.
    fn add(&mut self, messages: Vec<Arc<InnerMessage>>) -> bool {
        let mut answers: HashMap<Turn, bool> = HashMap::new();
        for message in messages.iter().filter(|message| message.role() == Role::Assistant) {
            *answers.entry(turn_of(message)).or_default() |= !TurnState::is_silent([message]);
        }
        if answers.iter().any(|(turn, speaks)| *speaks && self.silent.contains(turn)) {
            return false;
        }
        for (turn, speaks) in answers {
            if speaks {
                self.spoken.insert(turn);
            } else if !self.spoken.contains(&turn) {
                self.silent.insert(turn);
            }
        }
        for message in messages {
            if self.is_shown(&message) {
                let message = with_mark(&message);
                self.media.extend(media_of(&message.message));
                self.bytes += estimated_bytes(std::iter::once(&message));
                self.shown.extend([message]);
            }
            self.all.extend([message]);
        }
        true
    }

    /// True if the examined messages are a prefix of these. After a rewind others are in their places.
    fn begins(&self, messages: &Items<InnerMessage>) -> bool {
        let Some(last) = &self.last else { return false };
        let there = self.examined.checked_sub(1).and_then(|place| messages.get(place));
        there.is_some_and(|there| Arc::ptr_eq(there, last))
    }
}

fn turn_of(message: &InnerMessage) -> Turn {
    (message.evaluation_id, message.turn)
}

#[cfg(test)]
mod tests {
    use backstitch_core::extra::Extra;
    use backstitch_core::id::IdStream;
    use backstitch_core::message::{MessageBuilder, RoleHint};
    use backstitch_core::time::FixedClock;

    use super::super::question::without_silent;
    use super::*;

    /// Messages that tests combine: role, turn and text.
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
    fn growing_in_pieces_equals_examining_everything() {
        const LENGTH: u32 = 4;
        let ids = IdStream::from_seed([0; 32], Arc::new(FixedClock::default()));
        let (earlier, evaluation): (EvaluationId, EvaluationId) = (ids.next(), ids.next());
        let before: Vec<_> =
            [0, 1, 3, 4].into_iter().zip(0..).map(|(said, at)| message(&ids, earlier, at, said)).collect();
        for sequence in 0..SAID.len().pow(LENGTH) {
            let said = |place: u32| sequence / SAID.len().pow(place) % SAID.len();
            let messages: Vec<_> =
                (0..LENGTH).map(|place| message(&ids, evaluation, u64::from(place), said(place))).collect();
            for followed in [vec![], vec![earlier]] {
                let whole =
                    |end: usize| Transcript::new(before.iter().chain(&messages[..end]).cloned().collect());
                for cuts in 0..1_usize << (LENGTH - 1) {
                    let mut conversation = Conversation::default();
                    let ends = (1..messages.len()).filter(|end| cuts >> (end - 1) & 1 == 1);
                    for end in ends.chain([messages.len()]) {
                        conversation.grow(&whole(end), evaluation, || followed.clone());
                        let said = backstitch_core::machine::conversation(&whole(end), &followed, evaluation);
                        let expected = without_silent(said.into_iter().collect());
                        assert_eq!(conversation.shown, expected, "{sequence} {cuts:b} {end}");
                        assert_eq!(conversation.bytes, estimated_bytes(expected.iter()));
                    }
                }
            }
        }
    }

    #[test]
    fn followed_evaluations_are_requested_once() {
        let ids = IdStream::from_seed([0; 32], Arc::new(FixedClock::default()));
        let (earlier, evaluation): (EvaluationId, EvaluationId) = (ids.next(), ids.next());
        let mut transcript = Transcript::default();
        transcript.push(message(&ids, earlier, 0, 0));
        let mut conversation = Conversation::default();
        let mut asked = 0;
        for sequence in 0..4 {
            transcript.push(message(&ids, evaluation, sequence, 2));
            conversation.grow(&transcript, evaluation, || {
                asked += 1;
                vec![earlier]
            });
            assert_eq!(&conversation.shown, transcript.all());
        }
        assert_eq!(asked, 1);
    }

    #[test]
    fn an_evaluation_that_was_rewound_shows_no_discarded_messages() {
        let ids = IdStream::from_seed([0; 32], Arc::new(FixedClock::default()));
        let (evaluation, other): (EvaluationId, EvaluationId) = (ids.next(), ids.next());
        let first = message(&ids, evaluation, 0, 0);
        let (old, new) = (message(&ids, evaluation, 1, 2), message(&ids, evaluation, 1, 4));
        let of = |messages: &[&Arc<InnerMessage>]| -> Items<InnerMessage> {
            messages.iter().map(|message| Arc::clone(message)).collect()
        };
        let mut conversation = Conversation::default();
        for messages in [of(&[&first, &old]), of(&[&first, &new]), of(&[&first])] {
            conversation.grow(&Transcript::new(messages.clone()), evaluation, Vec::new);
            assert_eq!(conversation.shown, messages);
        }
        conversation.grow(&Transcript::default(), other, Vec::new);
        assert!(conversation.shown.is_empty());
    }
}
