//! What a machine is rebuilt from.

use std::sync::Arc;

use super::MachineError;
use crate::id::EvaluationId;
use crate::journal::{InnerMessage, ProgramStarted, TaskFinished, TurnFinished};
use crate::rng::Seed;
use crate::view::{Evaluation, JournalView};

/// What a journal says of one evaluation. What is too large for its records is only named in it, unless whoever made it has
/// put that back.
#[derive(Debug, Clone)]
pub struct Past {
    /// The evaluation.
    pub evaluation: Evaluation,
    /// What was said, in order.
    pub messages: Vec<Arc<InnerMessage>>,
    /// The programs that were started.
    pub programs: Vec<Arc<ProgramStarted>>,
    /// The tasks that programs have done.
    pub tasks: Vec<Arc<TaskFinished>>,
    /// The turns of programs that have ended.
    pub turns: Vec<Arc<TurnFinished>>,
    /// The seed of the session's chance.
    pub seed: Seed,
}

impl Past {
    /// What a journal says of an evaluation.
    pub fn of(view: &JournalView, evaluation: EvaluationId) -> Result<Self, MachineError> {
        let known = view.evaluation(evaluation).ok_or(MachineError::NoEvaluation { evaluation })?;
        let messages = view.transcript()?.inner_messages(evaluation);
        Ok(Self {
            programs: known.programs.iter().cloned().collect(),
            tasks: known.tasks.iter().cloned().collect(),
            turns: known.finished_turns.iter().cloned().collect(),
            evaluation: known.clone(),
            messages,
            seed: view.created().seed,
        })
    }
}
