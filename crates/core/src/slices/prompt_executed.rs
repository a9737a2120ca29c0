//! The log of answers.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::RunContext;
use crate::budget::Amounts;
use crate::extra::Extra;
use crate::session::{Slice, SlicePolicy};
use crate::time::Timestamp;

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
