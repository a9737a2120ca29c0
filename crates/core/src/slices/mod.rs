//! The slices that Backstitch itself keeps.
//!
//! | slice | stored name | policy | why |
//! |---|---|---|---|
//! | [`Plan`] | `plan` | State | working state, undone with a failed call |
//! | [`VisibilityOverrides`] | `visibility_overrides` | State | working state, undone with a failed call |
//! | [`WorkspaceDigest`] | `workspace_digest` | Cache | can be computed again |
//! | [`ToolInvoked`] | `tool_invoked` | Log | a call that failed was still made |
//! | [`PromptRendered`] | `prompt_rendered` | Log | what was rendered was rendered |
//! | [`PromptExecuted`] | `prompt_executed` | Log | what was answered was answered |
//!
//! A slice that says nothing about its policy is State. Here are the data and their rules only; the tools that work on
//! them live elsewhere. Each item keeps the fields that it does not know.

mod plan;
mod run_context;
mod small;
mod telemetry;
mod visibility;
mod workspace_digest;

pub use plan::{Plan, PlanError, PlanStatus, PlanStep, StepStatus};
pub use run_context::RunContext;
pub use small::{EXCERPT_LIMIT, excerpt, small};
pub use telemetry::{PromptExecuted, PromptRendered, ToolInvoked};
pub use visibility::{Visibility, VisibilityOverrides};
pub use workspace_digest::WorkspaceDigest;
