//! The logs of an evaluation: prompts, answers and calls. Large content is in the transcript and not here.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::budget::Amounts;
use crate::digest::Digest;
use crate::extra::Extra;
use crate::id::{CallId, EvaluationId, SessionId};
use crate::session::{Slice, SlicePolicy};
use crate::time::Timestamp;

/// The session, the evaluation, the attempt and the process that a log item belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunContext {
    /// The session.
    pub session_id: SessionId,
    /// The evaluation. All attempts share it.
    pub evaluation_id: EvaluationId,
    /// Number of the attempt, from 1.
    pub attempt: u32,
    /// The process that ran it, if there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker_id: Option<String>,
    /// The trace that it belongs to, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<String>,
    /// The span within the trace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub span_id: Option<String>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

impl RunContext {
    /// Creates the context of the first attempt of an evaluation.
    pub fn new(session_id: SessionId, evaluation_id: EvaluationId) -> Self {
        Self {
            session_id,
            evaluation_id,
            attempt: 1,
            worker_id: None,
            trace_id: None,
            span_id: None,
            extra: Extra::default(),
        }
    }
}

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
