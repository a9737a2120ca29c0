//! Options of requests.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use backstitch_core::message::MediaPart;
use serde_json::{Map, Value};

use super::refused::RefusedPart;
use super::report::{Departure, RenderReport};
use super::sampling::{SamplingOptions, ToolChoice};
use crate::provider::Provider;

/// How calls without a result are rendered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OpenCalls {
    /// They have a result that reports the interruption.
    #[default]
    Interrupted,
    /// They are left out.
    Skip,
}

/// The budget for thinking.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ThinkingBudget {
    /// The provider's default.
    #[default]
    Default,
    /// The model decides.
    Adaptive,
    /// At most this many tokens; 0 disables thinking. Providers without such a number refuse it.
    Budget(u32),
}

/// Whether reasoning is summarized.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ReasoningSummary {
    /// As the provider decides.
    #[default]
    Auto,
    /// No summary.
    None,
}

/// Whether cache marks are set for the provider.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CacheMarks {
    /// No marks.
    #[default]
    None,
    /// The tools, the system text and the ends of the last two user messages are marked.
    Auto,
}

/// How media is sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum MediaMode {
    /// By URL if the provider can load it, by bytes otherwise.
    #[default]
    PreferUrl,
    /// By bytes if they are available, by URL otherwise.
    PreferBytes,
}

/// How media that a provider does not accept is handled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum UnsupportedMediaPolicy {
    /// The request fails.
    #[default]
    Refuse,
    /// The media is described in words.
    Describe,
}

/// How structured output is requested.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum StructuredOutput {
    /// The provider enforces the schema if it can; otherwise the system message holds it.
    #[default]
    Native,
    /// The system message holds the schema. For compatible servers that do not support schemas.
    InWords,
}

/// Loads the bytes of media; `None` if they are not available.
pub type MediaBytes = dyn Fn(&MediaPart) -> Option<Arc<[u8]>> + Send + Sync;

/// The options of a request.
#[derive(Clone, Default)]
pub struct RequestOptions {
    /// The token limit of the answer. Providers that require one get 8192 plus the budget for thinking by
    /// default.
    pub max_output_tokens: Option<u32>,
    /// The budget for thinking.
    pub thinking: ThinkingBudget,
    /// The reasoning effort, in the provider's word.
    pub effort: Option<String>,
    /// Whether OpenAI Responses summarizes its reasoning, if an effort is set.
    pub summary: ReasoningSummary,
    /// The parts that the server refused in earlier requests. They are left out.
    pub refused: BTreeSet<RefusedPart>,
    /// Options of sampling.
    pub sampling: SamplingOptions,
    /// Which tools the model may or must call.
    pub tool_choice: ToolChoice,
    /// Whether an answer may have several calls.
    pub parallel_tool_calls: Option<bool>,
    /// The length of the answer, in the provider's word.
    pub verbosity: Option<String>,
    /// Further fields of the body, as the provider names them. They take precedence.
    pub body: Map<String, Value>,
    /// Whether cache marks are set.
    pub cache: CacheMarks,
    /// Identifies the conversation to caches that are found by name.
    pub cache_key: Option<String>,
    /// The JSON Schema of the answer. The schema of a question takes precedence.
    pub output_schema: Option<Arc<Value>>,
    /// How the structured output is requested.
    pub structured: StructuredOutput,
    /// How calls without a result are rendered.
    pub open_calls: OpenCalls,
    /// How media is sent.
    pub media: MediaMode,
    /// How media that the provider does not accept is handled.
    pub unsupported: UnsupportedMediaPolicy,
    /// Whether media items are sent without a text `Media n: hint` before each.
    pub without_labels: bool,
    /// Whether the answer is streamed.
    pub stream: bool,
    /// Loads the bytes of media. Without it, they are not available.
    pub bytes: Option<Arc<MediaBytes>>,
}

/// A provider does not support the value of an option. Nothing is sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{provider} does not take `{option}` like this: {reason}")]
pub struct RefusedOption {
    /// The provider.
    pub provider: Provider,
    /// The option, as it is named in agent files.
    pub option: &'static str,
    /// The cause.
    pub reason: String,
}

/// The name of an option and the problem with it, before the provider is named.
pub(crate) type OptionProblem = (&'static str, String);

impl RequestOptions {
    /// Whether the server refused a part before. That is noted as a departure.
    pub(crate) fn refuses(&self, part: RefusedPart, report: &mut RenderReport) -> bool {
        let is_refused = self.refused.contains(&part);
        if is_refused {
            report.note(Departure::Refused(part));
        }
        is_refused
    }

    /// Refuses a token limit below the minimum of a provider.
    pub(crate) fn refuse_limit_below(&self, least: u32) -> Option<OptionProblem> {
        let is_below = self.max_output_tokens.is_some_and(|limit| limit < least);
        is_below.then(|| ("max_output_tokens", format!("it takes at least {least}")))
    }
}

impl fmt::Debug for RequestOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("RequestOptions")
            .field("max_output_tokens", &self.max_output_tokens)
            .field("thinking", &self.thinking)
            .field("effort", &self.effort)
            .field("summary", &self.summary)
            .field("refused", &self.refused)
            .field("sampling", &self.sampling)
            .field("tool_choice", &self.tool_choice)
            .field("cache", &self.cache)
            .field("structured", &self.structured)
            .field("open_calls", &self.open_calls)
            .field("media", &self.media)
            .field("unsupported", &self.unsupported)
            .field("without_labels", &self.without_labels)
            .field("stream", &self.stream)
            .finish_non_exhaustive()
    }
}
