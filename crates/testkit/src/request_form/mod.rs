//! The published form of a request to each provider: fields, types, and dependencies.
//!
//! Strict servers refuse a request that does not have it, and others ignore unknown fields. A provider may send a field that
//! is newer than these tables and require it back, so the form is checked in tests, where all answers are known, and not
//! before each request.
//!
//! The forms are written by hand after the type definitions of the providers' SDKs, as of 2026-11-15: `openai` 6.49.0,
//! `@anthropic-ai/sdk` 1.8.0 and `@google/genai` 2.32.0, all from npm. Of fields that are never sent they contain only the
//! names. Fields that only answers have are not included.

mod anthropic;
mod form;
mod gemini;
mod openai_chat;
mod openai_responses;

use form::{Form, Shape, problems};
use serde_json::Value;

/// Refuses a request that does not have the published form of its provider: with an unknown field, a wrong type, or a missing
/// dependency. Panics if no provider has this name.
pub fn check_form(provider: &str, request: &Value) -> Result<(), String> {
    let found = problems(&Form::Object(shape(provider)), request);
    if found.is_empty() { Ok(()) } else { Err(format!("{provider} would refuse it: {}", found.join(", "))) }
}

fn shape(provider: &str) -> &'static Shape {
    match provider {
        "openai-chat" => &openai_chat::REQUEST,
        "openai" => &openai_responses::REQUEST,
        "anthropic" => &anthropic::REQUEST,
        "gemini" => &gemini::REQUEST,
        other => panic!("there is no form for {other}"),
    }
}
