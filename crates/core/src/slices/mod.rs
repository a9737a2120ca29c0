//! Slices that Backstitch itself defines.
//!
//! | slice | stored name | policy | why |
//! |---|---|---|---|
//! | [`Plan`] | `plan` | State | working state, undone with a failed call |
//! | [`VisibilityOverrides`] | `visibility_overrides` | State | working state, undone with a failed call |
//! | [`ApprovalRule`](crate::approval::ApprovalRule) | `approval_rule` | State | a decision of a person, undone with a rewind |
//! | [`ReceivedSignal`] | `received_signal` | State | undone with a rewind, so that what follows can wait for it again |
//! | [`WorkspaceDigest`] | `workspace_digest` | Cache | can be computed again |
//! | [`ToolInvoked`] | `tool_invoked` | Log | a call that failed was still made |
//! | [`PromptRendered`] | `prompt_rendered` | Log | a prompt that was rendered stays in the log |
//! | [`PromptExecuted`] | `prompt_executed` | Log | an answer that was received stays in the log |
//!
//! A slice without a declared policy is State. This module has only the data and their rules; the tools that
//! work on them live elsewhere. Each item keeps unknown fields.

mod plan;
mod signal;
mod small;
mod telemetry;
mod visibility;

pub use plan::{Plan, PlanError, PlanStatus, PlanStep, StepStatus};
pub use signal::ReceivedSignal;
pub use small::{EXCERPT_LIMIT, excerpt, small};
pub use telemetry::{PromptExecuted, PromptRendered, RunContext, ToolInvoked};
pub use visibility::{Visibility, VisibilityOverrides, WorkspaceDigest};
