//! Items for generated code. They are not a public interface and change without notice.

mod tool;

pub use serde::{Deserialize, Serialize};
pub use serde_json::{Value, json};
pub use {schemars, serde};

pub use crate::journal::Effect;
pub use crate::session::{Slice, SlicePolicy, UpcastError};
pub use crate::tool::{
    ResourceUse, Tool, ToolBuilder, ToolContext, ToolError, ToolOutcome, ToolResult, WorkspaceUse,
};
pub use tool::{
    NotAnAliasOfResult, compensate_with, describes_value, done, reconcile_with, tool_builder, tool_example,
    tool_result, value_result,
};
