//! The log of prompts.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::RunContext;
use crate::digest::Digest;
use crate::extra::Extra;
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
