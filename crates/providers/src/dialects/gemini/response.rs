//! Parses an answer into parts and calls.

use backstitch_core::message::{Modality, Part};
use backstitch_core::ports::{AnsweredCall, Finish, PolicyAnswer};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::DIALECT;
use crate::answer::FinishMeaning::{Length, Malformed, Other, Pause, Whole, Withheld};
use crate::answer::{
    FinishReasons, Payload, add_address, add_bytes, body_of, filled_at, finished, of_reason, text_at,
    value_arguments,
};
use crate::error::{ErrorKind, ProviderError};
use crate::provider::ModelTarget;

/// `finishReason` of Gemini.
pub(super) const FINISH_REASONS: FinishReasons = &[
    ("STOP", Whole),
    ("MAX_TOKENS", Length),
    ("CONTINUATION", Pause),
    ("SAFETY", Withheld),
    ("RECITATION", Withheld),
    ("LANGUAGE", Withheld),
    ("BLOCKLIST", Withheld),
    ("PROHIBITED_CONTENT", Withheld),
    ("SPII", Withheld),
    ("IMAGE_SAFETY", Withheld),
    ("IMAGE_PROHIBITED_CONTENT", Withheld),
    ("IMAGE_RECITATION", Withheld),
    ("IMAGE_OTHER", Malformed),
    ("NO_IMAGE", Malformed),
    ("MALFORMED_FUNCTION_CALL", Malformed),
    ("MALFORMED_RESPONSE", Malformed),
    ("UNEXPECTED_TOOL_CALL", Malformed),
    ("TOO_MANY_TOOL_CALLS", Malformed),
    ("OTHER", Malformed),
    ("FINISH_REASON_UNSPECIFIED", Other),
];

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    #[serde(borrow, default)]
    candidates: Vec<Candidate<'a>>,
    #[serde(default)]
    prompt_feedback: Value,
    #[serde(default)]
    usage_metadata: Value,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Candidate<'a> {
    #[serde(borrow, default)]
    content: Option<Content<'a>>,
    #[serde(default)]
    finish_reason: Option<String>,
    #[serde(default)]
    finish_message: Option<String>,
}

#[derive(Deserialize)]
struct Content<'a> {
    #[serde(borrow, default)]
    parts: Option<&'a RawValue>,
}

/// Parses a complete answer.
pub(super) fn parse(body: &str, target: &ModelTarget) -> Result<PolicyAnswer, ProviderError> {
    let Body { candidates, prompt_feedback, usage_metadata } = body_of(body, target)?;
    let mut end = End { prompt_feedback, usage: usage_metadata, ..End::default() };
    let mut parts = None;
    if let Some(candidate) = candidates.into_iter().next() {
        end.finish_reason = candidate.finish_reason;
        end.finish_message = candidate.finish_message;
        parts = candidate.content.and_then(|content| content.parts);
    }
    let payload = Payload::read(parts.map_or("[]", RawValue::get), target)?;
    DIALECT.usage.charge(&end.usage, answer(&payload, &end, target))
}

/// How an answer ended.
#[derive(Default)]
pub(super) struct End {
    pub(super) finish_reason: Option<String>,
    pub(super) finish_message: Option<String>,
    pub(super) prompt_feedback: Value,
    pub(super) usage: Value,
}

/// Builds the answer from its parts.
pub(super) fn answer(
    payload: &Payload<'_>,
    end: &End,
    target: &ModelTarget,
) -> Result<PolicyAnswer, ProviderError> {
    let refuse = |kind, text: &str| Err(ProviderError::new(target.provider, kind, text));
    if let Some(reason) = text_at(&end.prompt_feedback, "blockReason") {
        return refuse(ErrorKind::ContentFilter, &format!("the prompt was blocked: {reason}"));
    }
    let reason = end.finish_reason.as_deref();
    if reason.is_none() {
        return refuse(ErrorKind::Malformed, "the answer does not say why it ended");
    }
    let finish = of_reason(target.provider, FINISH_REASONS, reason, end.finish_message.as_deref())?;
    let parts = payload.items(target)?;
    let mut answer = payload.answer(target, reason);
    let mut buffer = String::new();
    let last = parts.len().saturating_sub(1);
    for (index, part) in parts.iter().enumerate() {
        if let Some(call) = part.get("functionCall") {
            let arguments = value_arguments(&call["args"]);
            answer.calls.push(AnsweredCall {
                cut_off: finish == Finish::Length && index == last,
                provider_call_id: filled_at(call, "id").map(str::to_owned),
                ..AnsweredCall::new(text_at(call, "name").unwrap_or_default(), arguments)
            });
        } else if part["thought"] != true {
            buffer.push_str(text_at(part, "text").unwrap_or_default());
            for (kind, name, add) in MEDIA {
                if let Some(media) = part.get(kind) {
                    say(&mut answer, &mut buffer);
                    let content = text_at(media, name).unwrap_or_default();
                    add(&mut answer, content, text_at(media, "mimeType"), Modality::Document);
                }
            }
        }
    }
    say(&mut answer, &mut buffer);
    Ok(finished(answer, finish))
}

/// Adds the text that was collected, if there is any.
fn say(answer: &mut PolicyAnswer, buffer: &mut String) {
    if !buffer.is_empty() {
        answer.parts.push(Part::text(std::mem::take(buffer)));
    }
}

/// Adds media of a modality that its MIME type may correct.
type AddMedia = fn(&mut PolicyAnswer, &str, Option<&str>, Modality);

/// Media of a part, by its bytes or by its address.
const MEDIA: [(&str, &str, AddMedia); 2] =
    [("inlineData", "data", add_bytes), ("fileData", "fileUri", add_address)];
