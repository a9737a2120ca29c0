//! Talks to model providers.
//!
//! Four wire formats are known: OpenAI Chat Completions (with every server that is compatible with it), OpenAI Responses,
//! Anthropic Messages and Gemini. For each there is
//!
//! - a pure projection from a conversation to a request ([`render()`]) and from an answer back ([`parse()`],
//!   [`stream_reader`]);
//! - a [validator](validate) that shares no code with the projection and runs before every send;
//! - a mapping of its errors into [one taxonomy](ErrorKind).
//!
//! What only one provider understands (reasoning, signatures) is kept with each answer byte for byte and goes back to the
//! provider and model that made it, and to nobody else; whatever a request leaves out is [reported](Report). [`ModelPolicy`]
//! puts it all together: it renders, validates, sends through a [`Transport`] and reads the answer. [`ScriptedPolicy`] needs
//! neither network nor key: its answers stand in a file.

mod anthropic;
pub mod cassette;
mod error;
mod finish;
mod gemini;
#[cfg(feature = "http")]
mod http;
mod legal;
mod limits;
mod media;
mod openai_chat;
mod openai_responses;
mod options;
mod parse;
mod plan;
mod policy;
mod provider;
mod render;
mod report;
mod schema;
mod scripted;
mod secret;
mod sse;
mod text_file;
mod thread;
mod transport;
pub mod validate;

pub use error::{ErrorKind, ProviderError, of_response, retry_delay};
pub use finish::{FinishMeaning, finish_reasons};
#[cfg(feature = "http")]
pub use http::Http;
pub use limits::{RequestLimits, RequestTooLarge};
pub use media::{MediaProblem, UnsupportedMedia};
pub use options::{
    CacheMarks, MediaBytes, MediaMode, OpenCalls, RefusedOption, RequestOptions, StructuredOutput, Thinking,
    Unsupported,
};
pub use parse::{Delta, StreamReader, parse, stream_reader};
pub use policy::{ModelPolicy, Unsent};
pub use provider::{Provider, Target};
pub use render::{RENDERER, RenderError, Rendered, render};
pub use report::{Departure, DropReason, Report};
pub use scripted::{Failure, Reply, Script, ScriptError, ScriptFormat, ScriptedCall, ScriptedPolicy};
pub use secret::ApiKey;
pub use sse::{EventTooLarge, SseDecoder, SseEvent};
pub use text_file::read_text;
pub use thread::{Call, Entry, Said, Thread, Turn};
pub use transport::{Body, HttpRequest, HttpResponse, Transport, TransportError};
