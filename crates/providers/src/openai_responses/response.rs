//! From an answer to parts and calls.

use backstitch_core::budget::Amounts;
use backstitch_core::message::{Arguments, Part};
use backstitch_core::ports::{Answer, AnsweredCall};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::error::{ErrorKind, ProviderError, of_event};
use crate::parse::{body_of, number, text_at};
use crate::provider::Target;

#[derive(Deserialize)]
struct Body<'a> {
    #[serde(borrow)]
    output: &'a RawValue,
    #[serde(default)]
    status: Option<String>,
    #[serde(default)]
    incomplete_details: Value,
    #[serde(default)]
    error: Value,
    #[serde(default)]
    usage: Value,
}

/// Reads a whole answer.
pub(crate) fn parse(body: &str, target: &Target) -> Result<Answer, ProviderError> {
    let Body { output, status, incomplete_details, error, usage } = body_of(body, target)?;
    let end = End { status, incomplete_details, error, usage };
    answer(output.get(), &end, target)
}

/// How an answer ended.
#[derive(Default)]
pub(super) struct End {
    pub(super) status: Option<String>,
    pub(super) incomplete_details: Value,
    pub(super) error: Value,
    pub(super) usage: Value,
}

/// The answer that a list of items is.
pub(super) fn answer(raw: &str, end: &End, target: &Target) -> Result<Answer, ProviderError> {
    if !end.error.is_null() || end.status.as_deref() == Some("failed") {
        return Err(of_event(target.provider, &serde_json::json!({"error": end.error})));
    }
    let reason = text_at(&end.incomplete_details, "reason");
    if reason == Some("content_filter") {
        let text = "the answer was withheld by the provider's filter";
        return Err(ProviderError::new(target.provider, ErrorKind::ContentFilter, text));
    }
    let items: Vec<Value> = body_of(raw, target)?;
    let mut answer = Answer {
        provider: Some(target.sidecar(raw, reason.or(end.status.as_deref()))),
        usage: amounts(&end.usage),
        ..Answer::default()
    };
    for item in &items {
        match text_at(item, "type") {
            Some("message") => {
                for part in item["content"].as_array().into_iter().flatten() {
                    if let Some(refusal) = text_at(part, "refusal") {
                        return Err(ProviderError::new(target.provider, ErrorKind::ContentFilter, refusal));
                    }
                    let text = text_at(part, "text").filter(|text| !text.is_empty());
                    answer.parts.extend(text.map(Part::text));
                }
            }
            Some("function_call") => {
                let text = text_at(item, "arguments").unwrap_or_default();
                let arguments = match text.trim().is_empty() {
                    true => Arguments::none(),
                    false => Arguments::from_text(text),
                };
                let mut call = AnsweredCall::new(text_at(item, "name").unwrap_or_default(), arguments);
                call.provider_call_id = text_at(item, "call_id").map(str::to_owned);
                answer.calls.push(call);
            }
            _ => {}
        }
    }
    Ok(answer)
}

fn amounts(usage: &Value) -> Amounts {
    Amounts {
        input_tokens: number(usage, "input_tokens"),
        output_tokens: number(usage, "output_tokens"),
        ..Amounts::ZERO
    }
}
