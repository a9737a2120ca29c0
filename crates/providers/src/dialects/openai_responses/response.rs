//! Parses an answer into parts and calls.

use backstitch_core::message::{Modality, Part};
use backstitch_core::ports::{AnsweredCall, Finish, PolicyAnswer};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::DIALECT;
use crate::answer::FinishMeaning::{Length, Malformed, Whole, Withheld};
use crate::answer::{
    FinishReasons, Payload, add_bytes, body_of, filled_at, finished, of_reason, text_arguments, text_at,
};
use crate::error::{ErrorKind, ProviderError, of_event};
use crate::provider::ModelTarget;

/// `incomplete_details.reason` of Responses, or `status` where there is none.
pub(super) const FINISH_REASONS: FinishReasons = &[
    ("completed", Whole),
    ("max_output_tokens", Length),
    ("content_filter", Withheld),
    ("max_messages", Length),
    ("steered", Length),
    ("incomplete", Length),
    ("cancelled", Malformed),
    ("in_progress", Malformed),
    ("queued", Malformed),
    ("failed", Malformed),
];

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

/// Parses a complete answer.
pub(super) fn parse(body: &str, target: &ModelTarget) -> Result<PolicyAnswer, ProviderError> {
    let Body { output, status, incomplete_details, error, usage } = body_of(body, target)?;
    let end = End { status, incomplete_details, error, usage };
    let payload = Payload::read(output.get(), target)?;
    DIALECT.usage.charge(&end.usage, answer(&payload, &end, target))
}

/// How an answer ended.
#[derive(Default)]
pub(super) struct End {
    pub(super) status: Option<String>,
    pub(super) incomplete_details: Value,
    pub(super) error: Value,
    pub(super) usage: Value,
}

/// Builds the answer from its items.
pub(super) fn answer(
    payload: &Payload<'_>,
    end: &End,
    target: &ModelTarget,
) -> Result<PolicyAnswer, ProviderError> {
    if !end.error.is_null() || end.status.as_deref() == Some("failed") {
        return Err(of_event(target.provider, DIALECT.classify, &serde_json::json!({"error": end.error})));
    }
    let reason = text_at(&end.incomplete_details, "reason").or(end.status.as_deref());
    let finish = match of_reason(target.provider, FINISH_REASONS, reason, None)? {
        // An incomplete answer is cut off, whatever the reason.
        Finish::Other(_) if end.status.as_deref() == Some("incomplete") => Finish::Length,
        finish => finish,
    };
    let items = payload.items(target)?;
    let mut answer = payload.answer(target, reason);
    let last = items.len().saturating_sub(1);
    for (index, item) in items.iter().enumerate() {
        match text_at(item, "type") {
            Some("message") => {
                for part in item["content"].as_array().into_iter().flatten() {
                    if let Some(refusal) = text_at(part, "refusal") {
                        return Err(ProviderError::new(target.provider, ErrorKind::ContentFilter, refusal));
                    }
                    answer.parts.extend(filled_at(part, "text").map(Part::text));
                }
            }
            Some("function_call") => {
                let (arguments, is_complete) = text_arguments(text_at(item, "arguments").unwrap_or_default());
                let ends_at_limit = finish == Finish::Length && index == last;
                answer.calls.push(AnsweredCall {
                    // Items that the limit cut off have this status, though not from all compatible servers.
                    cut_off: item["status"] == "incomplete" || (ends_at_limit && !is_complete),
                    provider_call_id: text_at(item, "call_id").map(str::to_owned),
                    ..AnsweredCall::new(text_at(item, "name").unwrap_or_default(), arguments)
                });
            }
            Some("image_generation_call") => {
                if let Some(data) = text_at(item, "result") {
                    add_bytes(&mut answer, data, None, Modality::Image);
                }
            }
            _ => {}
        }
    }
    Ok(finished(answer, finish))
}
