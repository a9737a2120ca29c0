//! Tools: functions that a model may call.
//!
//! A [`Tool`] is a [`ToolSpec`], plain data about it, and a [`ToolHandler`], its code. The code receives a
//! [`ToolContext`] and returns a [`ToolResult`] or a [`ToolError`]. The runner makes a transaction of each
//! call; every tool runs through it.

mod context;
mod error;
mod guard;
mod handler;
mod host;
mod inspection;
mod result;
mod wait;

pub use context::{ContextError, ContextParts, ToolContext};
pub use error::{ToolError, with_causes};
pub use handler::{
    Compensate, Reconcile, ReconcileOutcome, Tool, ToolBuilder, ToolHandler, ToolOutcome, schema_of,
};
pub use host::{Progress, ToolHost};
pub use inspection::{CallInspection, InspectionMoment};
pub use result::{ToolResult, ToolStatus, ValueInContext};

pub use crate::payload::Wait;
pub use crate::tool_spec::{
    Approval, CommandLimit, InvalidToolName, ResourceUse, ToolExample, ToolName, ToolSpec, WorkspaceUse,
};
