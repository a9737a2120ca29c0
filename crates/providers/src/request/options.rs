//! How a request is to be made.

use std::fmt;
use std::sync::Arc;

use backstitch_core::message::MediaPart;
use serde_json::Value;

use crate::provider::Provider;

/// What to do about calls that have no result.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OpenCalls {
    /// Tell the model that they were interrupted.
    #[default]
    Interrupted,
    /// Leave them out.
    Skip,
}

/// How much the model is asked to think.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ThinkingBudget {
    /// As the provider has it.
    #[default]
    Default,
    /// As much as the model finds right.
    Adaptive,
    /// At most this many tokens; 0 asks not to think. Providers that take no number refuse it.
    Budget(u32),
}

/// Whether the provider is told what to keep for the next request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CacheMarks {
    /// It is not.
    #[default]
    None,
    /// The tools, the system text and the ends of the last two user messages are marked.
    Auto,
}

/// How media reaches the model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum MediaMode {
    /// By its address where the provider can follow it, by its bytes otherwise.
    #[default]
    PreferUrl,
    /// By its bytes where they are at hand, by its address otherwise.
    PreferBytes,
}

/// What to do about media that a provider does not take.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum UnsupportedMediaPolicy {
    /// Refuse to make the request.
    #[default]
    Refuse,
    /// Say in words that it is there.
    Describe,
}

/// How a model is brought to answer with data.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum StructuredOutput {
    /// The provider holds it to the schema, where it can; where not, it is told.
    #[default]
    Native,
    /// It is told. For compatible servers that take no schema.
    InWords,
}

/// Where the bytes of media come from.
pub type MediaBytes = dyn Fn(&MediaPart) -> Option<Arc<[u8]>> + Send + Sync;

/// How a request is to be made.
#[derive(Clone)]
pub struct RequestOptions {
    /// The most tokens that the answer may have. Providers that need a number get 8192 when there is none, and as many more as
    /// are set for thinking.
    pub max_output_tokens: Option<u32>,
    /// How much the model is asked to think.
    pub thinking: ThinkingBudget,
    /// How hard the model is asked to try, in the provider's word.
    pub effort: Option<String>,
    /// What the provider is told to keep.
    pub cache: CacheMarks,
    /// Names the conversation to caches that are found by name.
    pub cache_key: Option<String>,
    /// The JSON Schema of the answer. A question that has one of its own is put with that.
    pub output_schema: Option<Arc<Value>>,
    /// How the model is brought to answer with it.
    pub structured: StructuredOutput,
    /// What to do about calls that have no result.
    pub open_calls: OpenCalls,
    /// How media reaches the model.
    pub media: MediaMode,
    /// What to do about media that the provider does not take.
    pub unsupported: UnsupportedMediaPolicy,
    /// Whether a text `Media n: hint` stands before each media item.
    pub labels: bool,
    /// Whether the answer comes piece by piece.
    pub stream: bool,
    /// Where the bytes of media come from.
    pub bytes: Arc<MediaBytes>,
}

impl Default for RequestOptions {
    fn default() -> Self {
        Self {
            max_output_tokens: None,
            thinking: ThinkingBudget::default(),
            effort: None,
            cache: CacheMarks::default(),
            cache_key: None,
            output_schema: None,
            structured: StructuredOutput::default(),
            open_calls: OpenCalls::default(),
            media: MediaMode::default(),
            unsupported: UnsupportedMediaPolicy::default(),
            labels: true,
            stream: false,
            bytes: Arc::new(|_| None),
        }
    }
}

/// An option that a provider cannot honour. Nothing is sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{provider} does not take `{option}` like this: {reason}")]
pub struct RefusedOption {
    /// The provider.
    pub provider: Provider,
    /// The option, as agent files name it.
    pub option: &'static str,
    /// Why.
    pub reason: String,
}

/// What is wrong with an option, before the provider is named.
pub(crate) struct OptionProblem {
    pub(crate) option: &'static str,
    pub(crate) reason: String,
}

impl OptionProblem {
    pub(crate) fn new(option: &'static str, reason: impl Into<String>) -> Self {
        Self { option, reason: reason.into() }
    }
}

impl RequestOptions {
    /// Refuses a limit of the answer that is below what a provider takes.
    pub(crate) fn refuse_limit_below(&self, least: u32) -> Option<OptionProblem> {
        let is_below = self.max_output_tokens.is_some_and(|limit| limit < least);
        is_below.then(|| OptionProblem::new("max_output_tokens", format!("it takes at least {least}")))
    }
}

impl fmt::Debug for RequestOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("RequestOptions")
            .field("max_output_tokens", &self.max_output_tokens)
            .field("thinking", &self.thinking)
            .field("effort", &self.effort)
            .field("cache", &self.cache)
            .field("structured", &self.structured)
            .field("open_calls", &self.open_calls)
            .field("media", &self.media)
            .field("unsupported", &self.unsupported)
            .field("labels", &self.labels)
            .field("stream", &self.stream)
            .finish_non_exhaustive()
    }
}
