//! From an answer to parts and calls.

use std::collections::BTreeMap;

use backstitch_core::budget::Amounts;
use backstitch_core::message::{Arguments, Part};
use backstitch_core::ports::{Answer, AnsweredCall};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::error::{ErrorKind, ProviderError};
use crate::parse::{body_of, number, text_at};
use crate::provider::Target;

#[derive(Deserialize)]
struct Body<'a> {
    #[serde(borrow)]
    content: &'a RawValue,
    #[serde(default)]
    stop_reason: Option<String>,
    #[serde(default)]
    stop_details: Value,
    #[serde(default)]
    usage: Value,
}

/// Reads a whole answer.
pub(crate) fn parse(body: &str, target: &Target) -> Result<Answer, ProviderError> {
    let Body { content, stop_reason, stop_details, usage } = body_of(body, target)?;
    let end = End { stop_reason, stop_details, usage };
    answer(content.get(), &end, &BTreeMap::new(), target)
}

/// How an answer ended.
#[derive(Default)]
pub(super) struct End {
    pub(super) stop_reason: Option<String>,
    pub(super) stop_details: Value,
    pub(super) usage: Value,
}

/// The answer that a content is. `texts` are the arguments as they were received, by the place of their block.
pub(super) fn answer(
    raw: &str,
    end: &End,
    texts: &BTreeMap<usize, String>,
    target: &Target,
) -> Result<Answer, ProviderError> {
    let reason = end.stop_reason.as_deref();
    match reason {
        Some("refusal") => {
            let text = text_at(&end.stop_details, "explanation").unwrap_or("the model refused to answer");
            return Err(ProviderError::new(target.provider, ErrorKind::ContentFilter, text));
        }
        Some("model_context_window_exceeded") => {
            let text = "the answer did not fit into the model's context";
            return Err(ProviderError::new(target.provider, ErrorKind::ContextTooLong, text));
        }
        _ => {}
    }
    let blocks: Vec<Value> = body_of(raw, target)?;
    let mut answer = Answer {
        provider: Some(target.sidecar(raw, reason)),
        usage: amounts(&end.usage),
        ..Answer::default()
    };
    let last = blocks.len().saturating_sub(1);
    for (index, block) in blocks.iter().enumerate() {
        match text_at(block, "type") {
            Some("text") => {
                let text = text_at(block, "text").filter(|text| !text.is_empty());
                answer.parts.extend(text.map(Part::text));
            }
            Some("tool_use") => {
                let was_cut = reason == Some("max_tokens") && index == last;
                let arguments = arguments(block, texts.get(&index), was_cut);
                let mut call = AnsweredCall::new(text_at(block, "name").unwrap_or_default(), arguments);
                call.provider_call_id = text_at(block, "id").map(str::to_owned);
                answer.calls.push(call);
            }
            _ => {}
        }
    }
    Ok(answer)
}

fn arguments(block: &Value, text: Option<&String>, was_cut: bool) -> Arguments {
    match (text, &block["input"]) {
        (Some(text), _) if text.trim().is_empty() => Arguments::none(),
        (Some(text), _) => Arguments::from_text(text.as_str()),
        // An object that the limit cut off may look whole. Without its last brace nobody runs it, and the model is told.
        (None, input) if was_cut => Arguments::from_text(input.to_string().trim_end_matches('}')),
        (None, Value::Object(input)) => Arguments::from_object(input.clone()),
        (None, Value::Null) => Arguments::none(),
        (None, other) => Arguments::from_text(other.to_string()),
    }
}

fn amounts(usage: &Value) -> Amounts {
    let input = ["input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"];
    Amounts {
        input_tokens: input.iter().map(|name| number(usage, name)).sum(),
        output_tokens: number(usage, "output_tokens"),
        ..Amounts::ZERO
    }
}
