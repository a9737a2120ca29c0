//! What a machine is rebuilt from.

use std::sync::Arc;

use super::followed::joined;
use super::{FollowedConversation, MachineError};
use crate::id::EvaluationId;
use crate::journal::{InnerMessage, LargeRecord, ProgramStarted, TaskFinished, TurnFinished};
use crate::rng::Seed;
use crate::view::{Evaluation, JournalView};

/// What a journal says of one evaluation. What is too large for its records is only named in it, unless whoever made it has
/// put that back.
#[derive(Debug, Clone)]
pub struct EvaluationHistory {
    /// The evaluation.
    pub evaluation: Evaluation,
    /// What was said, in order.
    pub messages: Vec<Arc<InnerMessage>>,
    /// The evaluations that it follows, the oldest first. Nothing in them counts for this one: not their answers, turns or calls.
    pub followed: Vec<FollowedConversation>,
    /// The programs that were started.
    pub programs: Vec<Arc<ProgramStarted>>,
    /// The tasks that programs have done.
    pub tasks: Vec<Arc<TaskFinished>>,
    /// The turns of programs that have ended.
    pub turns: Vec<Arc<TurnFinished>>,
    /// The seed of the session's chance.
    pub seed: Seed,
}

impl EvaluationHistory {
    /// What a journal says of an evaluation.
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

    /// The records that may refer to objects.
    pub fn large_records_mut(&mut self) -> impl Iterator<Item = &mut dyn LargeRecord> {
        let programs = self.programs.iter_mut().map(|record| record as &mut dyn LargeRecord);
        let tasks = self.tasks.iter_mut().map(|record| record as &mut dyn LargeRecord);
        let turns = self.turns.iter_mut().map(|record| record as &mut dyn LargeRecord);
        let answers = self.followed.iter_mut().filter_map(|followed| followed.finished.as_mut());
        programs.chain(tasks).chain(turns).chain(answers.map(|record| record as &mut dyn LargeRecord))
    }

    /// What was said in the whole conversation, in the order in which it is shown.
    pub fn conversation(&self) -> Vec<Arc<InnerMessage>> {
        joined(self.followed.iter().flat_map(|followed| followed.messages.iter().cloned()), &self.messages)
    }
}
