//! Conversations of several evaluations.
//!
//! An evaluation that follows others is shown with its own system message first, then what was said in those, then the rest of
//! its own messages. Each evaluation counts its turns from 0, so wherever a conversation is grouped by turns, they are numbered
//! by [`TurnNumbers`].

use std::collections::HashSet;
use std::sync::Arc;

use super::TurnState;
use crate::id::EvaluationId;
use crate::journal::{EvaluationFinished, InnerMessage, Role};
use crate::view::{JournalView, Transcript};

/// An evaluation that came before in the same conversation.
#[derive(Debug, Clone)]
pub struct FollowedConversation {
    /// The evaluation.
    pub evaluation_id: EvaluationId,
    /// What a later evaluation is shown of it, in order.
    pub messages: Vec<Arc<InnerMessage>>,
    /// How it ended.
    pub finished: Option<Arc<EvaluationFinished>>,
}

impl FollowedConversation {
    /// The evaluations that an evaluation follows, the oldest first.
    pub fn all(view: &JournalView, transcript: &Transcript, evaluation: EvaluationId) -> Vec<Self> {
        let followed = view.followed(evaluation).into_iter();
        let all = followed.map(|evaluation_id| Self {
            evaluation_id,
            messages: said_in(&transcript.inner_messages(evaluation_id)),
            finished: view
                .evaluation(evaluation_id)
                .and_then(|known| Some(known.finished.as_ref()?.record.clone())),
        });
        all.collect()
    }
}

/// What a later evaluation is shown of an ended one: all but the system message that it began with, which gives way to the later
/// one's, and answers that a filter withheld.
fn said_in(messages: &[Arc<InnerMessage>]) -> Vec<Arc<InnerMessage>> {
    let withheld: HashSet<u64> = super::answers_of(messages)
        .into_iter()
        .filter(|(_, answer)| TurnState::of(answer.iter().copied()) == TurnState::Withheld)
        .map(|(turn, _)| turn)
        .collect();
    let is_said = |message: &&Arc<InnerMessage>| match message.role() {
        Role::Assistant | Role::Tool => !withheld.contains(&message.turn),
        Role::System | Role::User => true,
    };
    let opening = usize::from(messages.first().is_some_and(|first| first.role() == Role::System));
    messages.iter().skip(opening).filter(is_said).cloned().collect()
}

/// A conversation in the order in which it is shown: the system message that an evaluation begins with, what was said in the
/// evaluations that it follows, and what was said in it.
pub fn conversation(
    transcript: &Transcript,
    followed: &[EvaluationId],
    evaluation: EvaluationId,
) -> Vec<Arc<InnerMessage>> {
    let own = transcript.inner_messages(evaluation);
    if followed.is_empty() {
        return own;
    }
    let before = followed.iter().flat_map(|followed| said_in(&transcript.inner_messages(*followed)));
    joined(before, &own)
}

/// The messages of an evaluation after those of the ones that it follows.
pub(super) fn joined(
    before: impl IntoIterator<Item = Arc<InnerMessage>>,
    own: &[Arc<InnerMessage>],
) -> Vec<Arc<InnerMessage>> {
    let opening = usize::from(own.first().is_some_and(|first| first.role() == Role::System));
    let (system, rest) = own.split_at(opening);
    system.iter().cloned().chain(before).chain(rest.iter().cloned()).collect()
}

/// Numbers the turns of a conversation, so that no two evaluations share a number. The turns of the first evaluation keep theirs;
/// those of each later one continue after the ones before it, its turn 0 included.
#[derive(Debug, Clone, Default)]
pub struct TurnNumbers {
    /// The number of each evaluation's turn 0.
    first: imbl::OrdMap<EvaluationId, u64>,
    /// The number of turn 0 of the evaluation that comes next.
    next: u64,
}

impl TurnNumbers {
    /// The number of the turn that a message belongs to. Messages of a later evaluation must not come before those of an earlier
    /// one, apart from the system message that a conversation begins with, which keeps its own.
    pub fn number(&mut self, message: &InnerMessage) -> u64 {
        if message.role() == Role::System && message.sequence == 0 {
            return message.turn;
        }
        let first = *self.first.entry(message.evaluation_id).or_insert(self.next);
        let number = first.saturating_add(message.turn);
        self.next = self.next.max(number.saturating_add(1));
        number
    }

    /// The number of a message that belongs to an evaluation which was numbered before; its own turn otherwise.
    pub fn known(&self, message: &InnerMessage) -> u64 {
        let first = self.first.get(&message.evaluation_id).copied().unwrap_or_default();
        first.saturating_add(message.turn)
    }
}
