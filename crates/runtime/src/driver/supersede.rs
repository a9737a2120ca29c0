//! Superseded evaluations, and those that replace them.
//!
//! When a call needs sections of the prompt to be open, its evaluation ends as superseded, and the same batch
//! opens the sections for the session. So the journal determines the next step at any time: start another
//! evaluation with the same mission, the messages since then, and the rest of the budget and time. The number
//! of consecutive expansions is limited.
//!
//! The sessions of sub-agents are driven for the tool runner with such evaluations included.

use std::sync::Arc;

use backstitch_core::code::ErrorCode;
use backstitch_core::id::EvaluationId;
use backstitch_core::journal::{EvaluationFinished, EvaluationOutcome, Role};
use backstitch_core::machine::EvaluationResult;
use backstitch_core::ports::BoxFuture;
use backstitch_core::slices::{Visibility, VisibilityOverrides};
use backstitch_core::view::JournalView;
use tokio_util::sync::CancellationToken;

use super::drive::LoopStep;
use super::output::is_by_runtime;
use super::{Driver, DriverParts, StopCause};
use crate::agent::{Agent, Mission, ResumeOptions};
use crate::error::Result;
use crate::live::LiveSession;
use crate::outcome::DriveOutcome;
use crate::runner::{ChildDriver, DriveChild};

/// The most evaluations that may be superseded one after another.
const MOST_EXPANSIONS: usize = 10;

/// Opens sections, and ends the evaluation so that another one can replace it.
pub(super) async fn expand(
    live: &LiveSession,
    evaluation: EvaluationId,
    sections: Vec<String>,
    reason: String,
) -> Result<LoopStep> {
    if expansions_before(&*live.view().await, evaluation) >= MOST_EXPANSIONS {
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

    /// Drives the evaluations that replace a superseded one. Expansions are limited, so this terminates.
    async fn and_start_over(&self, mut ended: DriveOutcome) -> Result<DriveOutcome> {
        while let DriveOutcome::Superseded { evaluation, .. } = ended {
            ended = self.start_over(evaluation).await?;
        }
        Ok(ended)
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

/// Returns what creates the drivers of sub-agents' sessions. They are stopped for the same reason as their callers.
pub(super) fn child_drivers(stopped_by: Option<StopCause>) -> DriveChild {
    Arc::new(move |live: Arc<LiveSession>, agent: Agent, stop: CancellationToken| -> Box<dyn ChildDriver> {
        let parts = DriverParts { stop, stopped_by: stopped_by.clone(), ..DriverParts::default() };
        Box::new(Driver::with_parts(live, agent, parts))
    })
}

impl ChildDriver for Driver {
    fn start(&self, mission: Mission) -> BoxFuture<'_, Result<DriveOutcome>> {
        Box::pin(async { self.and_start_over(self.start(mission).await?).await })
    }

    fn resume(&self, options: ResumeOptions) -> BoxFuture<'_, Result<DriveOutcome>> {
        Box::pin(async { self.and_start_over(self.resume(options).await?).await })
    }

    fn cancel(&self) {
        self.cancel();
    }
}
