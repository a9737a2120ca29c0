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

mod answer;
pub mod cassette;
mod dialects;
mod error;
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
pub use policy::{ModelPolicy, Unsent};
pub use provider::{Provider, Target};
pub use request::{
    CacheMarks, Call, Departure, DropReason, Entry, MediaBytes, MediaMode, MediaProblem, OpenCalls, RENDERER,
    RefusedOption, RenderError, Rendered, Report, RequestLimits, RequestOptions, RequestTooLarge, Said,
    StructuredOutput, Thinking, Thread, Turn, Unsupported, UnsupportedMedia,
};
pub use scripted::{Failure, Reply, Script, ScriptError, ScriptFormat, ScriptedCall, ScriptedPolicy};
pub use secret::ApiKey;
pub use text_file::{read_text, text_of};
#[cfg(feature = "http")]
pub use transport::Http;
pub use transport::{Body, HttpRequest, HttpResponse, Transport, TransportError};
pub use wire::{finish_reasons, of_response, parse, render, stream_reader};
