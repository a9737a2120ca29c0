//! Parses an answer into parts and calls.

use backstitch_core::message::{Arguments, Modality, Part};
use backstitch_core::ports::{AnsweredCall, Finish, PolicyAnswer};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::DIALECT;
use crate::answer::FinishMeaning::{Length, Malformed, Whole, Withheld};
use crate::answer::{FinishReasons, Payload, add_bytes, body_of, finished, of_reason, text_at};
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
    answer(&Payload::read(output.get(), target)?, &end, target)
}

/// How an answer ended.
#[derive(Default)]
pub(super) struct End {
    pub(super) status: Option<String>,
    pub(super) incomplete_details: Value,
    pub(super) error: Value,
    pub(super) usage: Value,
}

/// Builds the answer from its items. An answer that cannot be used costs what it reports.
pub(super) fn answer(
    payload: &Payload<'_>,
    end: &End,
    target: &ModelTarget,
) -> Result<PolicyAnswer, ProviderError> {
    let usage = DIALECT.usage.amounts(&end.usage);
    let answer = content(payload, end, target).map_err(|error| error.costing(usage))?;
    Ok(PolicyAnswer { usage, ..answer })
}

fn content(payload: &Payload<'_>, end: &End, target: &ModelTarget) -> Result<PolicyAnswer, ProviderError> {
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
    let mut answer =
        PolicyAnswer { provider: Some(target.sidecar(&payload.text, reason)), ..PolicyAnswer::default() };
    let last = items.len().saturating_sub(1);
    for (index, item) in items.iter().enumerate() {
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
                let arguments =
                    if text.trim().is_empty() { Arguments::none() } else { Arguments::from_text(text) };
                let ends_at_limit = finish == Finish::Length && index == last;
                let is_complete = !text.trim().is_empty() && arguments.is_parsable();
                let mut call = AnsweredCall::new(text_at(item, "name").unwrap_or_default(), arguments);
                // Items that the limit cut off have this status, though not from all compatible servers.
                call.cut_off = item["status"] == "incomplete" || (ends_at_limit && !is_complete);
                call.provider_call_id = text_at(item, "call_id").map(str::to_owned);
                answer.calls.push(call);
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
