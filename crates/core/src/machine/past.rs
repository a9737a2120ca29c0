//! The input from which a machine is rebuilt.

use std::sync::Arc;

use super::followed::joined;
use super::{FollowedConversation, MachineError};
use crate::id::EvaluationId;
use crate::journal::{InnerMessage, LargeRecord, ProgramStarted, TaskFinished, TurnFinished};
use crate::rng::Seed;
use crate::view::{Evaluation, JournalView};

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
