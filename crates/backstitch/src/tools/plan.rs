//! The plan of a session: an objective and the steps towards it.
//!
//! A plan is working state: a call that fails leaves it as it was. Every tool gives the whole plan back, since it is small and a
//! model that sees it makes fewer mistakes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::session::Draft;
use crate::slices::{Plan, PlanError, StepStatus};
use crate::tool::{ToolContext, ToolError};

/// A plan as a model is shown it.
#[derive(Serialize, JsonSchema)]
struct PlanView {
    /// What is to be reached.
    objective: String,
    /// Whether there is something left to do: `active` or `completed`.
    status: String,
    /// The steps, in order.
    steps: Vec<ShownStep>,
}

/// A step as a model is shown it.
#[derive(Serialize, JsonSchema)]
struct ShownStep {
    /// Its number.
    step: u32,
    /// What is to be done.
    title: String,
    /// How far it is.
    status: StepProgress,
}

/// How far a step is.
#[derive(Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum StepProgress {
    /// Not begun.
    Pending,
    /// Begun.
    InProgress,
    /// Finished.
    Done,
}

/// Writes a plan: an objective and the steps towards it. A plan that is there already is replaced.
#[crate::tool(crate = crate::__private, effect = "workspace", workspace = "none", example(
    description = "A plan of two steps",
    arguments = { "objective": "Mend the coat", "steps": ["Find the tear", "Sew it"] }
))]
pub fn setup_plan(
    context: &ToolContext,
    /// What is to be reached.
    objective: String,
    /// What is to be done, in order. More can be added later.
    #[arg(default)]
    steps: Vec<String>,
) -> Result<PlanView, ToolError> {
    let objective = said("objective", objective)?;
    let steps: Result<Vec<_>, _> = steps.into_iter().map(|step| said("step", step)).collect();
    let plan = Plan::new(objective, steps?).map_err(refused)?;
    context.session(|draft| keep(draft, plan))?
}

/// Adds a step to the end of the plan. A plan that was completed is active again.
#[crate::tool(crate = crate::__private, effect = "workspace", workspace = "none")]
pub fn add_plan_step(
    context: &ToolContext,
    /// What is to be done.
    title: String,
) -> Result<PlanView, ToolError> {
    let title = said("title", title)?;
    change(context, |plan| plan.add_step(title).map(|_| ()))
}

/// Says how far a step of the plan is. When all steps are done, the plan is completed.
#[crate::tool(crate = crate::__private, effect = "workspace", workspace = "none")]
pub fn update_plan_step(
    context: &ToolContext,
    /// The number of the step, as the plan shows it.
    step: u32,
    /// How far it is: `pending`, `in_progress` or `done`.
    status: StepProgress,
) -> Result<PlanView, ToolError> {
    let status = match status {
        StepProgress::Pending => StepStatus::Pending,
        StepProgress::InProgress => StepStatus::InProgress,
        StepProgress::Done => StepStatus::Done,
    };
    change(context, |plan| plan.set_step(step, status))
}

/// Gives the plan.
#[crate::tool(crate = crate::__private, effect = "pure", workspace = "none")]
pub fn read_plan(context: &ToolContext) -> Result<PlanView, ToolError> {
    context.session(|draft| current(draft).map(|plan| shown(&plan)))?
}

fn change(
    context: &ToolContext,
    edit: impl FnOnce(&mut Plan) -> Result<(), PlanError>,
) -> Result<PlanView, ToolError> {
    context.session(|draft| {
        let mut plan = current(draft)?;
        edit(&mut plan).map_err(refused)?;
        keep(draft, plan)
    })?
}

fn current(draft: &Draft) -> Result<Plan, ToolError> {
    let missing = || ToolError::of_kind("no_plan", "there is no plan yet: write one with setup_plan");
    draft.latest::<Plan>()?.map(|plan| (*plan).clone()).ok_or_else(missing)
}

/// Makes this the one plan of the session.
fn keep(draft: &mut Draft, plan: Plan) -> Result<PlanView, ToolError> {
    let shown = shown(&plan);
    draft.seed([plan])?;
    Ok(shown)
}

fn shown(plan: &Plan) -> PlanView {
    let steps = plan.steps().iter().map(|step| ShownStep {
        step: step.id,
        title: step.title.clone(),
        status: match step.status {
            StepStatus::Pending => StepProgress::Pending,
            StepStatus::InProgress => StepProgress::InProgress,
            StepStatus::Done => StepProgress::Done,
        },
    });
    PlanView { objective: plan.objective.clone(), status: plan.status().to_string(), steps: steps.collect() }
}

/// A text that says something.
fn said(what: &str, text: String) -> Result<String, ToolError> {
    match text.trim().is_empty() {
        true => Err(ToolError::Validation { message: format!("the {what} says nothing") }),
        false => Ok(text),
    }
}

fn refused(error: PlanError) -> ToolError {
    ToolError::Validation { message: error.to_string() }
}
