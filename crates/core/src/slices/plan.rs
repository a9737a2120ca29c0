//! The plan of an agent: an objective and the steps towards it.
//!
//! The status of a plan is not stored; it follows from the steps. A plan completes with its last step, and
//! adding a step to a completed plan makes it active again. Steps are numbered from 1 in the order in which
//! they were added, and numbers are never reused.

use serde::{Deserialize, Deserializer, Serialize, de};

use crate::extra::Extra;
use crate::session::Slice;
use crate::text_form::words;

/// An objective and the steps towards it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Goal of the plan.
    pub objective: String,
    #[serde(default, deserialize_with = "ordered_steps")]
    steps: Vec<PlanStep>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

/// One step of a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlanStep {
    /// Number of the step, from 1.
    pub id: u32,
    /// Work to be done.
    pub title: String,
    /// Progress of the step.
    pub status: StepStatus,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

words! {
    /// Progress of a step.
    #[derive(Default)]
    StepStatus = "status of a step" {
        /// Not started.
        #[default]
        Pending = "pending",
        /// Started.
        InProgress = "in_progress",
        /// Finished.
        Done = "done",
    }
}

words! {
    /// Progress of a plan.
    PlanStatus = "status of a plan" {
        /// A step is not done, or the plan has no steps.
        Active = "active",
        /// All steps are done.
        Completed = "completed",
    }
}

/// A plan refused a change.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// There is no such step.
    #[error("the plan has no step {id}")]
    NoStep {
        /// Number of the step.
        id: u32,
    },
    /// The numbers of the steps do not increase from 1.
    #[error("step {id} of the plan is out of order; steps are numbered upwards from 1")]
    OutOfOrder {
        /// Number of the first step that is out of order.
        id: u32,
    },
    /// All step numbers are used.
    #[error("the plan can hold no more steps")]
    Full,
}

impl Slice for Plan {
    const NAME: &'static str = "plan";
}

impl Plan {
    /// Creates a plan with these steps, all pending.
    pub fn new(
        objective: impl Into<String>,
        steps: impl IntoIterator<Item = impl Into<String>>,
    ) -> Result<Self, PlanError> {
        let mut plan = Self { objective: objective.into(), steps: Vec::new(), extra: Extra::default() };
        for title in steps {
            plan.add_step(title)?;
        }
        Ok(plan)
    }

    /// Returns the status that follows from the steps.
    pub fn status(&self) -> PlanStatus {
        let done = |step: &PlanStep| step.status == StepStatus::Done;
        if !self.steps.is_empty() && self.steps.iter().all(done) {
            PlanStatus::Completed
        } else {
            PlanStatus::Active
        }
    }

    /// The steps, in order.
    pub fn steps(&self) -> &[PlanStep] {
        &self.steps
    }

    /// Adds a step at the end and returns its number.
    pub fn add_step(&mut self, title: impl Into<String>) -> Result<u32, PlanError> {
        let last = self.steps.last().map_or(0, |step| step.id);
        let id = last.checked_add(1).ok_or(PlanError::Full)?;
        let (title, status) = (title.into(), StepStatus::Pending);
        self.steps.push(PlanStep { id, title, status, extra: Extra::default() });
        Ok(id)
    }

    /// Sets the status of a step.
    pub fn set_step(&mut self, id: u32, status: StepStatus) -> Result<(), PlanError> {
        let step = self.steps.iter_mut().find(|step| step.id == id).ok_or(PlanError::NoStep { id })?;
        step.status = status;
        Ok(())
    }
}

/// Reads steps, and refuses numbers that are out of order.
fn ordered_steps<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<PlanStep>, D::Error> {
    let steps = Vec::<PlanStep>::deserialize(deserializer)?;
    let mut last = 0;
    for step in &steps {
        if step.id <= last {
            return Err(de::Error::custom(PlanError::OutOfOrder { id: step.id }));
        }
        last = step.id;
    }
    Ok(steps)
}
