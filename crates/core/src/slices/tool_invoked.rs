//! The log of calls.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::RunContext;
use crate::budget::Amounts;
use crate::extra::Extra;
use crate::id::CallId;
use crate::session::{Slice, SlicePolicy};
use crate::time::Timestamp;

/// A tool was invoked. What it was given and what it gave back are in the transcript, under the call's id; here they stand
/// as far as they are small.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolInvoked {
    /// The call.
    pub call_id: CallId,
    /// The prompt that offered the tool.
    pub prompt_name: String,
    /// What speaks to the model.
    pub adapter: String,
    /// The tool's name.
    pub name: String,
    /// What it was given, unless that is [too large](super::small).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub params: Option<Value>,
    /// Whether it succeeded. When it did not, nothing else remains of what it did.
    pub success: bool,
    /// What the model was told, [cut](super::excerpt) where it is long.
    pub rendered_output: String,
    /// What it cost, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Amounts>,
    /// Within what it happened.
    pub run: RunContext,
    /// When it ended.
    pub created_at: Timestamp,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

impl Slice for ToolInvoked {
    const NAME: &'static str = "tool_invoked";
    const POLICY: SlicePolicy = SlicePolicy::Log;
}
