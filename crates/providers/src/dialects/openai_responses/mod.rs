//! OpenAI Responses, used without server-side state.
//!
//! The input is a flat list of items. Reasoning is encrypted, and is always sent together with the item that
//! it led to. Images of the model are items, and are sent back with their bytes. The raw payload of an answer
//! is its list of output items.

mod request;
mod response;
mod rules;
mod stream;

use backstitch_core::message::Modality;

use super::{Dialect, openai};
use crate::answer::UsageFields;
use crate::request::{IMAGES, MediaRules, MediaSupport, PDF};

/// The minimum token limit of an answer.
const LEAST_OUTPUT: u32 = 16;

pub(super) static DIALECT: Dialect = Dialect {
    address: openai::address(|_, _| "/responses".to_owned()),
    limits: openai::LIMITS,
    media: &MediaRules {
        support: &[
            MediaSupport::any(Modality::Image, IMAGES, openai::MEDIA_LIMIT),
            MediaSupport::any(Modality::Document, PDF, openai::MEDIA_LIMIT),
        ],
        needs_type_of_url: false,
    },
    refused_option: |options| {
        let limit = options.refuse_limit_below(LEAST_OUTPUT);
        let limit = limit.or_else(|| openai::refused_thinking(options));
        limit
            .or_else(|| options.refuse_effort_except(&openai::EFFORTS))
            .or_else(|| options.refuse_set(&["seed", "stop"]))
    },
    output_schema: openai::output_schema,
    messages: "input",
    raw_calls: request::raw_calls,
    render_input: request::render_input,
    render_turn: request::render_turn,
    render_body: request::render_body,
    parse: response::parse,
    stream_reader: |target| Box::new(stream::ResponsesStream::new(target)),
    usage: &UsageFields {
        input: &["/input_tokens"],
        cache_read: &["/input_tokens_details/cached_tokens"],
        cache_write: &["/input_tokens_details/cache_write_tokens"],
        output: &["/output_tokens"],
        reasoning: &["/output_tokens_details/reasoning_tokens"],
    },
    finish_reasons: response::FINISH_REASONS,
    classify: openai::classify,
    rules: rules::RULES,
};
