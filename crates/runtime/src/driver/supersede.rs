//! Superseded evaluations, and those that replace them.
//!
//! When a call needs sections of the prompt to be open, its evaluation ends as superseded, and the same batch
//! opens the sections for the session. So the journal determines the next step at any time: start another
//! evaluation with the same mission, the messages since then, and the rest of the budget and time. The number
//! of consecutive expansions is limited.

use backstitch_core::code::ErrorCode;
use backstitch_core::id::EvaluationId;
use backstitch_core::journal::{EvaluationFinished, EvaluationOutcome, Role};
use backstitch_core::machine::EvaluationResult;
use backstitch_core::slices::{Visibility, VisibilityOverrides};
use backstitch_core::view::JournalView;

use super::Driver;
use super::drive::LoopStep;
use super::output::is_by_runtime;
use crate::agent::Mission;
use crate::error::Result;
use crate::live::LiveSession;
use crate::outcome::DriveOutcome;

/// The most evaluations that may be superseded one after another.
const MOST_EXPANSIONS: usize = 10;

/// Opens sections, and ends the evaluation so that another one can replace it.
pub(super) async fn expand(
    live: &LiveSession,
    evaluation: EvaluationId,
    sections: Vec<String>,
    reason: String,
) -> Result<LoopStep> {
    if expansions_before(&live.view().await, evaluation) >= MOST_EXPANSIONS {
        let message = format!(
            "sections of the prompt were opened {MOST_EXPANSIONS} times, and more are wanted: {}",
            sections.join(", ")
        );
        return Ok(LoopStep::Finish(EvaluationResult::failed(ErrorCode::VisibilityExpansionLimit, message)));
    }
    live.commit(|commit| {
        let session = commit.session();
        let overrides = session.latest::<VisibilityOverrides>()?;
        let mut overrides = overrides.map(|overrides| (*overrides).clone()).unwrap_or_default();
        for section in &sections {
            overrides.set(section.as_str(), Visibility::Full);
        }
        let mut draft = session.draft();
        draft.seed([overrides])?;
        commit.keep(|session| session.prepare(&draft))?;
        commit.push(EvaluationFinished::new(evaluation, EvaluationOutcome::Superseded));
        Ok(())
    })
    .await?;
    Ok(LoopStep::End(DriveOutcome::Superseded { evaluation, sections, reason }))
}

impl Driver {
    /// Starts an evaluation that replaces a superseded one, and drives it to its end, or to a pause.
    pub async fn start_over(&self, superseded: EvaluationId) -> Result<DriveOutcome> {
        let messages = self.content.transcript().await?.inner_messages(superseded);
        let by_a_person =
            messages.iter().filter(|message| message.role() == Role::User && !is_by_runtime(message));
        let missions = by_a_person.filter_map(|message| message.message.parts());
        let missions = missions.map(|parts| Mission::new(parts.to_vec())).collect();
        let evaluation = self.begin_with(missions, Some(superseded), Vec::new()).await?;
        self.drive(evaluation).await
    }
}

/// Counts the evaluations that were superseded one after another before this one.
fn expansions_before(view: &JournalView, evaluation: EvaluationId) -> usize {
    let parent = |evaluation: EvaluationId| {
        view.evaluation(evaluation).and_then(|known| known.started_with()?.parent_evaluation)
    };
    // Counting stops one above the limit.
    std::iter::successors(parent(evaluation), |parent_of| parent(*parent_of))
        .take(MOST_EXPANSIONS + 1)
        .count()
}
