//! Tools for the plan of a session: an objective and the steps towards it.
//!
//! A plan is State: a failed call leaves it unchanged. Every tool returns the whole plan, because it is small
//! and a model that sees it makes fewer mistakes.

use schemars::JsonSchema;
use serde::Serialize;

use crate::session::Draft;
use crate::slices::{Plan, PlanError, StepStatus};
use crate::tool::{ToolContext, ToolError};

/// The plan of a session.
#[derive(Serialize, JsonSchema)]
struct PlanView {
    /// The goal of the plan.
    objective: String,
    /// `active` while a step is not done, else `completed`.
    status: String,
    /// The steps, in order.
    steps: Vec<ShownStep>,
}

/// A step of the plan.
#[derive(Serialize, JsonSchema)]
struct ShownStep {
    /// Its number.
    step: u32,
    /// The task of the step.
    title: String,
    /// Its status.
    status: StepStatus,
}

/// Writes a plan: an objective and the steps towards it. An existing plan is replaced.
#[crate::tool(crate = crate::__private, effect = "workspace", workspace = "none", example(
    description = "A plan of two steps",
    arguments = { "objective": "Mend the coat", "steps": ["Find the tear", "Sew it"] }
))]
pub fn setup_plan(
    context: &ToolContext,
    /// The goal of the plan.
    objective: String,
    /// The tasks of the steps, in order. More can be added later.
    #[arg(default)]
    steps: Vec<String>,
) -> Result<PlanView, ToolError> {
    let objective = not_blank("objective", objective)?;
    let steps: Result<Vec<_>, _> = steps.into_iter().map(|step| not_blank("step", step)).collect();
    let plan = Plan::new(objective, steps?).map_err(refused)?;
    context.session(|draft| keep(draft, plan))?
}

/// Adds a step to the end of the plan. A completed plan becomes active again.
#[crate::tool(crate = crate::__private, effect = "workspace", workspace = "none")]
pub fn add_plan_step(
    context: &ToolContext,
    /// The task of the step.
    title: String,
) -> Result<PlanView, ToolError> {
    let title = not_blank("title", title)?;
    change(context, |plan| plan.add_step(title).map(|_| ()))
}

/// Sets the status of a step of the plan. When all steps are done, the plan is completed.
#[crate::tool(crate = crate::__private, effect = "workspace", workspace = "none")]
pub fn update_plan_step(
    context: &ToolContext,
    /// The number of the step, as the plan shows it.
    step: u32,
    /// The new status: `pending`, `in_progress` or `done`.
    status: StepStatus,
) -> Result<PlanView, ToolError> {
    change(context, |plan| plan.set_step(step, status))
}

/// Returns the plan with the status of each step.
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

/// Replaces the plan of the session.
fn keep(draft: &mut Draft, plan: Plan) -> Result<PlanView, ToolError> {
    let shown = shown(&plan);
    draft.seed([plan])?;
    Ok(shown)
}

fn shown(plan: &Plan) -> PlanView {
    let steps = plan.steps().iter().map(|step| ShownStep {
        step: step.id,
        title: step.title.clone(),
        status: step.status,
    });
    PlanView { objective: plan.objective.clone(), status: plan.status().to_string(), steps: steps.collect() }
}

/// Refuses a blank text.
fn not_blank(what: &str, text: String) -> Result<String, ToolError> {
    if text.trim().is_empty() {
        return Err(ToolError::Validation { message: format!("the {what} is blank") });
    }
    Ok(text)
}

fn refused(error: PlanError) -> ToolError {
    ToolError::Validation { message: error.to_string() }
}
