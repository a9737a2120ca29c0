//! Clients of model providers.
//!
//! There are four wire formats: OpenAI Chat Completions (with every compatible server), OpenAI Responses,
//! Anthropic Messages and Gemini. Each has
//!
//! - a pure projection from a conversation to a request ([`render()`]) and from an answer back ([`parse()`],
//!   [`stream_reader`]);
//! - a [validator](validate) that shares no code with the projection and runs before every send;
//! - a mapping of its errors into [one taxonomy](ErrorKind).
//!
//! Content that only one provider understands (reasoning, signatures) is kept with each answer byte for byte,
//! and is sent back only to the provider and model that made it. Everything that a request leaves out is
//! [reported](RenderReport). [`ModelPolicy`] combines these: it renders, validates, sends through a
//! [`Transport`] and parses the answer. [`ScriptedPolicy`] needs neither network nor key: it reads its
//! answers from a file.

mod answer;
pub mod cassette;
mod dialects;
mod error;
mod facts;
mod policy;
mod provider;
mod request;
mod rules;
mod scripted;
mod secret;
mod text_file;
mod transport;
pub mod validate;
mod wire;

pub use answer::{Delta, EventTooLarge, FinishMeaning, SseDecoder, SseEvent, StreamReader};
pub use error::{ErrorKind, ProviderError, retry_delay};
pub use facts::{ModelFacts, ServedModel, ServedPrice};
pub use policy::{ModelPolicy, SendError, WantedFacts};
pub use provider::{ModelTarget, Provider};
pub use request::{
    CacheMarks, Departure, DropReason, InputMessage, MediaBytes, MediaMode, MediaProblem, OpenCalls,
    RENDERER, ReasoningSummary, RefusedOption, RefusedPart, RenderError, RenderReport, RenderedRequest,
    RequestLimits, RequestOptions, RequestTooLarge, SamplingOptions, StructuredOutput, ThinkingBudget,
    Thread, ThreadCall, ThreadEntry, ThreadTurn, ToolChoice, UnsupportedMedia, UnsupportedMediaPolicy,
};
pub use scripted::{
    Script, ScriptError, ScriptFormat, ScriptedCall, ScriptedFailure, ScriptedPolicy, ScriptedReply,
};
pub use secret::ApiKey;
pub use text_file::{read_text, text_of};
#[cfg(feature = "http")]
pub use transport::Http;
pub use transport::{
    Body, HttpRequest, HttpResponse, InvalidHeader, RequestHeader, Transport, TransportError,
};
pub use wire::{finish_reasons, of_response, parse, render, stream_reader};
