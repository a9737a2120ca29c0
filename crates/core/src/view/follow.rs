//! Evaluations that form one conversation.

use super::evaluation::Evaluation;
use super::fold::JournalView;
use crate::id::EvaluationId;

impl JournalView {
    /// Returns the evaluations whose conversation an evaluation continues, oldest first and without itself.
    /// The chain ends at an evaluation that is not visible here, such as one that was not exported with an
    /// adopted conversation, or that is not older.
    pub fn followed(&self, evaluation: EvaluationId) -> Vec<EvaluationId> {
        let before = |later: &usize| {
            let later_evaluation = self.visible.evaluations.get(*later)?;
            self.visible.place_of(follows(later_evaluation)?).filter(|place| place < later)
        };
        let line = std::iter::successors(self.visible.place_of(evaluation), before).skip(1);
        let mut line: Vec<EvaluationId> = line
            .filter_map(|place| self.visible.evaluations.get(place).map(|known| known.evaluation_id))
            .collect();
        line.reverse();
        line
    }

    /// Returns the evaluation that the next one follows: the latest, regardless of its outcome. An evaluation
    /// that supersedes another repeats its mission, and therefore follows what the superseded one followed.
    pub fn to_follow(&self, superseded: Option<EvaluationId>) -> Option<EvaluationId> {
        match superseded {
            Some(superseded) => follows(self.evaluation(superseded)?),
            None => self.latest_evaluation().map(|latest| latest.evaluation_id),
        }
    }
}

/// Returns the recorded predecessor of an evaluation.
fn follows(evaluation: &Evaluation) -> Option<EvaluationId> {
    evaluation.started_with()?.follows
}
