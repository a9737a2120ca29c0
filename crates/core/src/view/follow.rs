//! Which evaluations are one conversation.

use super::evaluation::Evaluation;
use super::fold::JournalView;
use crate::id::EvaluationId;

impl JournalView {
    /// The evaluations whose conversation an evaluation continues, the oldest first and without itself. An evaluation that is not
    /// visible here, such as one that an adopted conversation left behind, ends the line, and so does one that is not older.
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

    /// The evaluation that the next one follows: the latest, however it ended. One that takes the place of a superseded one says
    /// again what that one was asked, and so follows what that one followed.
    pub fn to_follow(&self, superseded: Option<EvaluationId>) -> Option<EvaluationId> {
        match superseded {
            Some(superseded) => follows(self.evaluation(superseded)?),
            None => self.latest_evaluation().map(|latest| latest.evaluation_id),
        }
    }
}

/// The evaluation that an evaluation says it follows.
fn follows(evaluation: &Evaluation) -> Option<EvaluationId> {
    evaluation.started_with()?.follows
}
