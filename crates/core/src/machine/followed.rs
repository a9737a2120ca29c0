//! Conversations of several evaluations, and the records from which a machine is rebuilt.
//!
//! A follow-up evaluation shows its own system message first, then the messages of the evaluations that it
//! follows, then the rest of its own. Each evaluation counts its turns from 0, so [`TurnNumbers`] renumbers
//! them wherever a conversation is grouped by turns.

use std::collections::HashSet;
use std::sync::Arc;

use super::{MachineError, TurnState};
use crate::id::EvaluationId;
use crate::journal::{
    EvaluationFinished, InnerMessage, LargeRecord, ProgramStarted, Role, TaskFinished, TurnFinished,
};
use crate::rng::Seed;
use crate::view::{Evaluation, JournalView, Transcript};

/// An earlier evaluation of the same conversation.
#[derive(Debug, Clone)]
pub struct FollowedConversation {
    /// The evaluation.
    pub evaluation_id: EvaluationId,
    /// The messages that a later evaluation sees, in order.
    pub messages: Vec<Arc<InnerMessage>>,
    /// The end of the evaluation, if it has ended.
    pub finished: Option<Arc<EvaluationFinished>>,
}

impl FollowedConversation {
    /// Returns the evaluations that an evaluation follows, oldest first.
    pub fn all(view: &JournalView, transcript: &Transcript, evaluation: EvaluationId) -> Vec<Self> {
        let followed = view.followed(evaluation).into_iter();
        let all = followed.map(|evaluation_id| Self {
            evaluation_id,
            messages: visible_messages(&transcript.inner_messages(evaluation_id)),
            finished: view
                .evaluation(evaluation_id)
                .and_then(|known| Some(known.finished.as_ref()?.record.clone())),
        });
        all.collect()
    }
}

/// Returns the messages of an ended evaluation that a later one sees: all except its initial system message,
/// which the later one replaces, and answers that a filter withheld.
fn visible_messages(messages: &[Arc<InnerMessage>]) -> Vec<Arc<InnerMessage>> {
    let withheld: HashSet<u64> = super::answers_of(messages)
        .into_iter()
        .filter(|(_, answer)| TurnState::of(answer.iter().copied()) == TurnState::Withheld)
        .map(|(turn, _)| turn)
        .collect();
    let is_visible = |message: &&Arc<InnerMessage>| match message.role() {
        Role::Assistant | Role::Tool => !withheld.contains(&message.turn),
        Role::System | Role::User => true,
    };
    let opening = usize::from(messages.first().is_some_and(|first| first.role() == Role::System));
    messages.iter().skip(opening).filter(is_visible).cloned().collect()
}

/// Returns a conversation in display order: the initial system message of an evaluation, the messages of the
/// evaluations that it follows, and the rest of its own.
pub fn conversation(
    transcript: &Transcript,
    followed: &[EvaluationId],
    evaluation: EvaluationId,
) -> Vec<Arc<InnerMessage>> {
    let own = transcript.inner_messages(evaluation);
    if followed.is_empty() {
        return own;
    }
    let before = followed.iter().flat_map(|followed| visible_messages(&transcript.inner_messages(*followed)));
    joined(before, &own)
}

/// Appends the messages of an evaluation to those of the ones that it follows.
fn joined(
    before: impl IntoIterator<Item = Arc<InnerMessage>>,
    own: &[Arc<InnerMessage>],
) -> Vec<Arc<InnerMessage>> {
    let opening = usize::from(own.first().is_some_and(|first| first.role() == Role::System));
    let (system, rest) = own.split_at(opening);
    system.iter().cloned().chain(before).chain(rest.iter().cloned()).collect()
}

/// Numbers the turns of a conversation, so that no two evaluations share a number. The turns of the first
/// evaluation keep their numbers; those of each later one continue after the ones before it, including its
/// turn 0.
#[derive(Debug, Clone, Default)]
pub struct TurnNumbers {
    /// Number of each evaluation's turn 0.
    first: imbl::OrdMap<EvaluationId, u64>,
    /// Number of turn 0 of the next evaluation.
    next: u64,
}

impl TurnNumbers {
    /// Returns the number of a message's turn. Messages of a later evaluation must not precede those of an
    /// earlier one, except for the initial system message, which keeps its own number.
    pub fn number(&mut self, message: &InnerMessage) -> u64 {
        if message.role() == Role::System && message.sequence == 0 {
            return message.turn;
        }
        let first = *self.first.entry(message.evaluation_id).or_insert(self.next);
        let number = first.saturating_add(message.turn);
        self.next = self.next.max(number.saturating_add(1));
        number
    }

    /// Returns the number of a message's turn if its evaluation was numbered before; its own turn otherwise.
    pub fn known(&self, message: &InnerMessage) -> u64 {
        let first = self.first.get(&message.evaluation_id).copied().unwrap_or_default();
        first.saturating_add(message.turn)
    }
}

/// The records of one evaluation. Content that is too large for records is only referenced, unless the caller
/// has loaded it.
#[derive(Debug, Clone)]
pub struct EvaluationHistory {
    /// The evaluation.
    pub evaluation: Evaluation,
    /// Messages of the evaluation, in order.
    pub messages: Vec<Arc<InnerMessage>>,
    /// The evaluations that it follows, oldest first. Their answers, turns and calls do not count for this
    /// one.
    pub followed: Vec<FollowedConversation>,
    /// The programs that were started.
    pub programs: Vec<Arc<ProgramStarted>>,
    /// The finished tasks of programs.
    pub tasks: Vec<Arc<TaskFinished>>,
    /// The finished turns of programs.
    pub turns: Vec<Arc<TurnFinished>>,
    /// Seed of the session's random numbers.
    pub seed: Seed,
}

impl EvaluationHistory {
    /// Collects the records of an evaluation.
    pub fn of(view: &JournalView, evaluation: EvaluationId) -> Result<Self, MachineError> {
        let known = view.evaluation(evaluation).ok_or(MachineError::NoEvaluation { evaluation })?;
        let transcript = view.transcript()?;
        let messages = transcript.inner_messages(evaluation);
        Ok(Self {
            followed: FollowedConversation::all(view, &transcript, evaluation),
            programs: known.programs.iter().cloned().collect(),
            tasks: known.tasks.iter().cloned().collect(),
            turns: known.finished_turns.iter().cloned().collect(),
            evaluation: known.clone(),
            messages,
            seed: view.created().seed,
        })
    }

    /// Iterates over the records that may refer to objects.
    pub fn large_records_mut(&mut self) -> impl Iterator<Item = &mut dyn LargeRecord> {
        let programs = self.programs.iter_mut().map(|record| record as &mut dyn LargeRecord);
        let tasks = self.tasks.iter_mut().map(|record| record as &mut dyn LargeRecord);
        let turns = self.turns.iter_mut().map(|record| record as &mut dyn LargeRecord);
        let answers = self.followed.iter_mut().filter_map(|followed| followed.finished.as_mut());
        programs.chain(tasks).chain(turns).chain(answers.map(|record| record as &mut dyn LargeRecord))
    }

    /// Returns all messages of the conversation, in display order.
    pub fn conversation(&self) -> Vec<Arc<InnerMessage>> {
        joined(self.followed.iter().flat_map(|followed| followed.messages.iter().cloned()), &self.messages)
    }
}
