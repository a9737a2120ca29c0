//! The logs of an evaluation: prompts, answers and calls. What is large stands in the transcript and not here.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::RunContext;
use crate::budget::Amounts;
use crate::digest::Digest;
use crate::extra::Extra;
use crate::id::CallId;
use crate::session::{Slice, SlicePolicy};
use crate::time::Timestamp;

/// A prompt was rendered. Its text is in the transcript; here stands what tells it from others.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PromptRendered {
    /// The namespace of the prompt's key.
    pub prompt_ns: String,
    /// The prompt's key.
    pub prompt_key: String,
    /// The prompt's name.
    pub prompt_name: String,
    /// What speaks to the model.
    pub adapter: String,
    /// What the prompt was rendered from, unless that is [too large](super::small).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub render_inputs: Option<Value>,
    /// The digest of the text.
    pub rendered: Digest,
    /// How many bytes the text has.
    pub rendered_bytes: u64,
    /// The digest of what the prompt promises: its sections and the contracts of its tools. Equal ones can resume each other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub descriptor: Option<Digest>,
    /// Within what it happened.
    pub run: RunContext,
    /// When it was rendered.
    pub created_at: Timestamp,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

impl Slice for PromptRendered {
    const NAME: &'static str = "prompt_rendered";
    const POLICY: SlicePolicy = SlicePolicy::Log;
}

/// A prompt was driven to its answer. The whole answer is in the transcript; here it stands as far as it is small.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PromptExecuted {
    /// The prompt's name.
    pub prompt_name: String,
    /// What speaks to the model.
    pub adapter: String,
    /// The answer in words, [cut](super::excerpt) where it is long; absent when there were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The answer as data, unless there was none or it is [too large](super::small).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    /// What it cost, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Amounts>,
    /// Within what it happened.
    pub run: RunContext,
    /// When the answer was there.
    pub created_at: Timestamp,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

impl Slice for PromptExecuted {
    const NAME: &'static str = "prompt_executed";
    const POLICY: SlicePolicy = SlicePolicy::Log;
}

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
