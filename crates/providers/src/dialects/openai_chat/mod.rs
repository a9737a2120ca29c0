//! OpenAI Chat Completions, and every server that is compatible with it.
//!
//! Each call is answered by a `tool` message right after the message that made it. Results are text; media of
//! results stands in a user message after them, and images of the model in the next user message. The raw
//! payload of an answer is its `message`.

mod request;
mod response;
mod rules;
mod stream;

use backstitch_core::message::Modality;

use super::{Dialect, openai};
use crate::answer::UsageFields;
use crate::request::{IMAGES, MediaRules, MediaSupport, PDF};

const SOUNDS: &[&str] = &["audio/wav", "audio/mpeg"];

pub(super) static DIALECT: Dialect = Dialect {
    address: openai::address(|_, _| "/chat/completions".to_owned()),
    limits: openai::LIMITS,
    media: &MediaRules {
        support: &[
            MediaSupport::any(Modality::Image, IMAGES, openai::MEDIA_LIMIT),
            MediaSupport::bytes(Modality::Audio, SOUNDS, openai::MEDIA_LIMIT),
            MediaSupport::bytes(Modality::Document, PDF, openai::MEDIA_LIMIT),
        ],
        needs_type_of_url: false,
    },
    refused_option: |options| {
        let limit = options.refuse_limit_below(1);
        let limit = limit.or_else(|| openai::refused_thinking(options));
        limit.or_else(|| options.refuse_effort_except(&openai::EFFORTS))
    },
    output_schema: openai::output_schema,
    messages: "messages",
    raw_calls: request::raw_calls,
    render_input: request::render_input,
    render_turn: request::render_turn,
    render_body: request::render_body,
    parse: response::parse,
    stream_reader: |target| Box::new(stream::ChatStream::new(target)),
    usage: &UsageFields {
        input: &["/prompt_tokens"],
        // The second is DeepSeek's, the third Moonshot's.
        cache_read: &["/prompt_tokens_details/cached_tokens", "/prompt_cache_hit_tokens", "/cached_tokens"],
        cache_write: &["/prompt_tokens_details/cache_write_tokens"],
        output: &["/completion_tokens"],
        reasoning: &["/completion_tokens_details/reasoning_tokens"],
    },
    finish_reasons: response::FINISH_REASONS,
    classify: openai::classify,
    rules: rules::RULES,
};
