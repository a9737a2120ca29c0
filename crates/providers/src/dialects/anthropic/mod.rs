//! Anthropic Messages.
//!
//! All results of a turn stand first in the user message after it. Thoughts are signed and are sent back
//! unchanged. The raw payload of an answer is its `content`.

mod error;
mod request;
mod response;
mod rules;
mod schema;
mod stream;

use backstitch_core::message::Modality;

use super::{Address, Dialect};
use crate::answer::UsageFields;
use crate::request::{
    IMAGES, MIB, MediaRules, MediaSupport, OptionProblem, PDF, RequestLimits, RequestOptions, ThinkingBudget,
};

/// The API version of the requests.
const VERSION: &str = "2023-06-01";

/// Words for the effort.
const EFFORTS: [&str; 5] = ["low", "medium", "high", "xhigh", "max"];

/// The minimum token budget for thinking.
const LEAST_THINKING: u32 = 1024;

pub(super) static DIALECT: Dialect = Dialect {
    address: Address {
        base: "https://api.anthropic.com",
        path: |_, _| "/v1/messages".to_owned(),
        models: "/v1/models",
        headers: &[("anthropic-version", VERSION)],
        key_header: ("x-api-key", ""),
        key_variables: &["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"],
    },
    limits: RequestLimits { bytes: 32_000_000, media: 100 },
    media: &MediaRules {
        support: &[
            MediaSupport::any(Modality::Image, IMAGES, 5 * MIB),
            MediaSupport::any(Modality::Document, PDF, 20 * MIB),
        ],
        needs_type_of_url: false,
    },
    refused_option,
    output_schema: schema::output_schema,
    messages: "messages",
    raw_calls: request::raw_calls,
    render_input: request::render_input,
    render_turn: request::render_turn,
    render_body: request::render_body,
    parse: response::parse,
    stream_reader: |target| Box::new(stream::MessagesStream::new(target)),
    usage: &UsageFields {
        input: &["/input_tokens", "/cache_creation_input_tokens", "/cache_read_input_tokens"],
        cache_read: &["/cache_read_input_tokens"],
        cache_write: &["/cache_creation_input_tokens"],
        output: &["/output_tokens"],
        reasoning: &["/output_tokens_details/thinking_tokens"],
    },
    finish_reasons: response::FINISH_REASONS,
    classify: error::classify,
    rules: rules::RULES,
};

fn refused_option(options: &RequestOptions) -> Option<OptionProblem> {
    let problem = options
        .refuse_limit_below(1)
        .or_else(|| options.refuse_effort_except(&EFFORTS))
        .or_else(|| options.refuse_set(&["temperature", "top_p", "seed", "verbosity"]));
    if problem.is_some() {
        return problem;
    }
    let thinks = !matches!(options.thinking, ThinkingBudget::Default | ThinkingBudget::Budget(0));
    if thinks && options.tool_choice.is_forced() {
        return Some(("tool_choice", "with thinking no call can be required".to_owned()));
    }
    let ThinkingBudget::Budget(budget) = options.thinking else { return None };
    let reason = match options.max_output_tokens {
        _ if (1..LEAST_THINKING).contains(&budget) => {
            format!("it takes at least {LEAST_THINKING} tokens, or 0 for none")
        }
        Some(limit) if budget >= limit => format!(
            "{budget} tokens of thinking are part of the answer, and `max_output_tokens` allows {limit}"
        ),
        _ => return None,
    };
    Some(("thinking", reason))
}
