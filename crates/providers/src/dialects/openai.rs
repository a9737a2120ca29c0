//! Shared code of the two wire formats of OpenAI.

use serde_json::Value;

use super::Address;
use crate::error::{ErrorKind, SentError};
use crate::provider::ModelTarget;
use crate::request::{
    OptionProblem, OutputSchema, RequestInput, RequestLimits, RequestOptions, SchemaDialect, ThinkingBudget,
    ToolChoice, legal,
};

pub(super) const LIMITS: RequestLimits = RequestLimits { bytes: 512 * 1024 * 1024, media: 500 };

/// The maximum size of one media item in bytes.
pub(super) const MEDIA_LIMIT: usize = 20 * 1024 * 1024;

/// The address of OpenAI, with a path below it.
pub(super) const fn address(path: fn(&ModelTarget, bool) -> String) -> Address {
    Address {
        base: "https://api.openai.com/v1",
        path,
        models: "/models",
        headers: &[],
        key_header: ("authorization", "Bearer "),
        key_variables: &["OPENAI_API_KEY"],
    }
}

/// Refuses a token budget for thinking.
pub(super) fn refused_thinking(options: &RequestOptions) -> Option<OptionProblem> {
    matches!(options.thinking, ThinkingBudget::Budget(_))
        .then(|| ("thinking", "it takes no number of tokens; say `effort` instead".to_owned()))
}

/// Words for the effort of reasoning.
pub(super) const EFFORTS: [&str; 7] = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];

/// The choice of tools; null without tools. `named` renders the choice of one tool.
pub(super) fn tool_choice(input: &RequestInput<'_>, named: impl Fn(&str) -> Value) -> Value {
    match &input.options.tool_choice {
        _ if input.tools.is_empty() => Value::Null,
        ToolChoice::Default => Value::Null,
        ToolChoice::Auto => "auto".into(),
        ToolChoice::None => "none".into(),
        ToolChoice::Required => "required".into(),
        ToolChoice::Named(name) => named(&legal::legal_name(name)),
    }
}

const SCHEMA: SchemaDialect = SchemaDialect {
    described: &["minLength", "maxLength", "uniqueItems", "minProperties", "maxProperties"],
    min_items: u64::MAX,
    complete: true,
};

/// A strict schema where it can be expressed as one, and a plain one otherwise.
pub(super) fn output_schema(schema: &Value, _: &ModelTarget, _: bool) -> Option<OutputSchema> {
    let strict = SCHEMA.adapt(schema).map(|schema| OutputSchema { schema, strict: true });
    Some(strict.unwrap_or_else(|| OutputSchema::plain(schema)))
}

pub(super) fn classify<'a>(sent: &SentError<'a>) -> (ErrorKind, Option<&'a str>) {
    let (kind, code) = (sent.text("type"), sent.text("code"));
    (meaning(sent, kind, code), code.or(kind))
}

fn meaning(sent: &SentError<'_>, kind: Option<&str>, code: Option<&str>) -> ErrorKind {
    const NO_MONEY: [&str; 2] = ["insufficient_quota", "credit_balance_exhausted"];
    let words = [code.unwrap_or_default(), kind.unwrap_or_default()];
    if words.iter().any(|word| NO_MONEY.contains(word)) {
        return ErrorKind::OutOfCredit;
    }
    for word in words {
        return match word {
            "context_length_exceeded" => ErrorKind::ContextTooLong,
            "content_policy_violation"
            | "content_filter"
            | "invalid_prompt"
            | "bio_policy"
            | "misalignment_policy_violation" => ErrorKind::ContentFilter,
            "rate_limit_exceeded" | "rate_limit_error" | "slow_down" => ErrorKind::RateLimited,
            "server_is_overloaded" | "service_unavailable_error" => ErrorKind::Overloaded,
            "invalid_api_key" | "authentication_error" => ErrorKind::Auth,
            "server_error" if sent.status.is_none() => ErrorKind::Server,
            "invalid_request_error" if sent.status.is_none() => ErrorKind::InvalidRequest,
            _ => continue,
        };
    }
    sent.by_status()
}
