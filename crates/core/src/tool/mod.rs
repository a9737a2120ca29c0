//! Tools: what a model may call.
//!
//! A [`Tool`] is a [`ToolSpec`], plain data about it, and a [`ToolHandler`], the code behind it. The code is given a
//! [`ToolContext`] and answers with a [`ToolResult`] or a [`ToolError`]. How a call becomes a transaction is the business of the
//! runner, the one door through which any tool runs.

mod context;
mod error;
mod guard;
mod handler;
mod host;
mod result;

pub use context::{ContextError, ContextParts, ToolContext};
pub use error::{ToolError, with_causes};
pub use handler::{
    Compensate, Reconcile, ReconcileOutcome, Tool, ToolBuilder, ToolHandler, ToolOutcome, schema_of,
};
pub use host::{Progress, ToolHost};
pub use result::{ToolResult, ToolStatus, ValueInContext};

pub use crate::tool_spec::{
    Approval, InvalidToolName, ResourceUse, ToolExample, ToolName, ToolSpec, WorkspaceUse,
};
