//! Gemini.
//!
//! A turn with calls is followed immediately by a turn with as many responses. Signatures of thoughts stand
//! on the part that the thoughts led to, and are sent back on that part. The raw payload of an answer is its
//! list of parts.

mod error;
mod request;
mod response;
mod rules;
mod stream;

use backstitch_core::message::Modality;
use serde_json::Value;

use super::{Address, Dialect};
use crate::answer::UsageFields;
use crate::provider::ModelTarget;
use crate::request::{
    MIB, MediaRules, MediaSupport, OptionProblem, OutputSchema, RequestLimits, RequestOptions, ThinkingBudget,
};

/// Words for the effort. They are sent in upper case.
const EFFORTS: [&str; 8] = ["minimal", "low", "medium", "high", "MINIMAL", "LOW", "MEDIUM", "HIGH"];

pub(super) static DIALECT: Dialect = Dialect {
    address: Address {
        base: "https://generativelanguage.googleapis.com",
        path,
        models: "/v1beta/models",
        headers: &[],
        key_header: ("x-goog-api-key", ""),
        key_variables: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
    },
    limits: RequestLimits { bytes: 20 * MIB, media: 3_000 },
    media: &MediaRules {
        support: &[
            MediaSupport::any(Modality::Image, &[], 14 * MIB),
            MediaSupport::any(Modality::Audio, &[], 14 * MIB),
            MediaSupport::any(Modality::Video, &[], 14 * MIB),
            MediaSupport::any(Modality::Document, &[], 14 * MIB),
        ],
        needs_type_of_url: true,
    },
    refused_option,
    output_schema,
    messages: "contents",
    raw_calls: request::raw_calls,
    render_input: request::render_input,
    render_turn: request::render_turn,
    render_body: request::render_body,
    parse: response::parse,
    stream_reader: |target| Box::new(stream::GeminiStream::new(target)),
    usage: &UsageFields {
        input: &["/promptTokenCount", "/toolUsePromptTokenCount"],
        cache_read: &["/cachedContentTokenCount"],
        cache_write: &[],
        output: &["/candidatesTokenCount", "/thoughtsTokenCount"],
        reasoning: &["/thoughtsTokenCount"],
    },
    finish_reasons: response::FINISH_REASONS,
    classify: error::classify,
    rules: rules::RULES,
};

fn path(target: &ModelTarget, stream: bool) -> String {
    let method = if stream { "streamGenerateContent?alt=sse" } else { "generateContent" };
    format!("/v1beta/models/{}:{method}", escaped(&target.model))
}

/// Percent-encodes the name of a model for a path.
fn escaped(model: &str) -> String {
    let mut path = String::with_capacity(model.len());
    for byte in model.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => path.push(char::from(byte)),
            _ => path.push_str(&format!("%{byte:02X}")),
        }
    }
    path
}

fn refused_option(options: &RequestOptions) -> Option<OptionProblem> {
    let has_both = matches!(options.thinking, ThinkingBudget::Budget(_)) && options.effort.is_some();
    let both = || ("thinking", "it takes a number of tokens or `effort`, and not both".to_owned());
    options
        .refuse_limit_below(1)
        .or_else(|| has_both.then(both))
        .or_else(|| options.refuse_effort_except(&EFFORTS))
        .or_else(|| options.refuse_set(&["parallel_tool_calls", "verbosity"]))
}

fn output_schema(schema: &Value, target: &ModelTarget, has_tools: bool) -> Option<OutputSchema> {
    // Models before the third generation accept either tools or a schema.
    let name = target.model.rsplit('/').next().unwrap_or(&target.model);
    let is_old = name.starts_with("gemini-1") || name.starts_with("gemini-2");
    (!(has_tools && is_old)).then(|| OutputSchema::plain(schema))
}
