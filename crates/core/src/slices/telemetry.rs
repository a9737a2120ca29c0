//! The logs of an evaluation: prompts, answers and calls. Large content is in the transcript and not here.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::RunContext;
use crate::budget::Amounts;
use crate::digest::Digest;
use crate::extra::Extra;
use crate::id::CallId;
use crate::session::{Slice, SlicePolicy};
use crate::time::Timestamp;

/// A prompt was rendered. Its text is in the transcript; this item holds what distinguishes it from others.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PromptRendered {
    /// The namespace of the prompt's key.
    pub prompt_ns: String,
    /// The prompt's key.
    pub prompt_key: String,
    /// The prompt's name.
    pub prompt_name: String,
    /// Adapter that sends requests to the model.
    pub adapter: String,
    /// Parameters of the prompt, unless they are [too large](super::small).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub render_inputs: Option<Value>,
    /// Digest of the rendered text.
    pub rendered: Digest,
    /// Length of the rendered text.
    pub rendered_bytes: u64,
    /// Digest of the prompt's contract: its sections and the contracts of its tools. Evaluations with equal
    /// digests can resume each other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub descriptor: Option<Digest>,
    /// Context of the rendering.
    pub run: RunContext,
    /// Time of rendering.
    pub created_at: Timestamp,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

impl Slice for PromptRendered {
    const NAME: &'static str = "prompt_rendered";
    const POLICY: SlicePolicy = SlicePolicy::Log;
}

/// A prompt was driven to its answer. The whole answer is in the transcript; this item holds small parts of
/// it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PromptExecuted {
    /// The prompt's name.
    pub prompt_name: String,
    /// Adapter that sends requests to the model.
    pub adapter: String,
    /// The text of the answer, [cut](super::excerpt) if it is long; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The structured answer, unless there is none or it is [too large](super::small).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    /// Cost, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Amounts>,
    /// Context of the evaluation.
    pub run: RunContext,
    /// Time at which the answer was complete.
    pub created_at: Timestamp,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

impl Slice for PromptExecuted {
    const NAME: &'static str = "prompt_executed";
    const POLICY: SlicePolicy = SlicePolicy::Log;
}

/// A tool was invoked. Its arguments and its result are in the transcript, under the call's id; this item
/// holds them as far as they are small.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolInvoked {
    /// The call.
    pub call_id: CallId,
    /// The prompt that offered the tool.
    pub prompt_name: String,
    /// Adapter that sends requests to the model.
    pub adapter: String,
    /// The tool's name.
    pub name: String,
    /// Arguments, unless they are [too large](super::small).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub params: Option<Value>,
    /// Whether the call succeeded. If it failed, its other effects were rolled back.
    pub success: bool,
    /// The result that the model received, [cut](super::excerpt) if it is long.
    pub rendered_output: String,
    /// Cost, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Amounts>,
    /// Context of the call.
    pub run: RunContext,
    /// Time at which the call ended.
    pub created_at: Timestamp,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

impl Slice for ToolInvoked {
    const NAME: &'static str = "tool_invoked";
    const POLICY: SlicePolicy = SlicePolicy::Log;
}
