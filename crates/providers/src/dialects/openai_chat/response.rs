//! Parses an answer into parts and calls.

use backstitch_core::message::{Modality, Part};
use backstitch_core::ports::{AnsweredCall, Finish, PolicyAnswer};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::DIALECT;
use crate::answer::FinishMeaning::{Length, Malformed, Whole, Withheld};
use crate::answer::{
    FinishReasons, Payload, SplitText, add_address, add_bytes, body_of, filled_at, finished, of_reason,
    text_arguments, text_at, value_arguments, without_thoughts,
};
use crate::error::{ErrorKind, ProviderError};
use crate::provider::ModelTarget;

/// `finish_reason` of Chat Completions. The last three are of compatible servers: Mistral has the first two,
/// DeepSeek the third.
pub(super) const FINISH_REASONS: FinishReasons = &[
    ("stop", Whole),
    ("tool_calls", Whole),
    ("function_call", Whole),
    ("length", Length),
    ("content_filter", Withheld),
    ("model_length", Length),
    ("error", Malformed),
    ("insufficient_system_resource", Malformed),
];

#[derive(Deserialize)]
struct Body<'a> {
    #[serde(borrow)]
    choices: Vec<Choice<'a>>,
    #[serde(default)]
    usage: Value,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(borrow)]
    message: &'a RawValue,
    #[serde(default)]
    finish_reason: Option<String>,
}

/// Parses a complete answer.
pub(super) fn parse(body: &str, target: &ModelTarget) -> Result<PolicyAnswer, ProviderError> {
    let Body { choices, usage } = body_of(body, target)?;
    let Some(choice) = choices.first() else {
        return Err(ProviderError::malformed(target.provider, "the answer has no choices"));
    };
    let payload = Payload::read(choice.message.get(), target)?;
    DIALECT.usage.charge(&usage, answer(&payload, choice.finish_reason.as_deref(), target))
}

/// Builds the answer from its message.
pub(super) fn answer(
    payload: &Payload<'_>,
    finish_reason: Option<&str>,
    target: &ModelTarget,
) -> Result<PolicyAnswer, ProviderError> {
    let message = &payload.json;
    if let Some(refusal) = filled_at(message, "refusal") {
        return Err(ProviderError::new(target.provider, ErrorKind::ContentFilter, refusal));
    }
    let finish = of_reason(target.provider, FINISH_REASONS, finish_reason, None)?;
    let mut answer = payload.answer(target, finish_reason);
    match &message["content"] {
        Value::String(text) => {
            let SplitText { answer: visible, is_open } = without_thoughts(text);
            // Thoughts that the limit cut off are not an answer.
            let is_cut = is_open && finish == Finish::Length;
            if !visible.is_empty() && !is_cut {
                answer.parts.push(Part::text(visible));
            }
        }
        // Some compatible servers answer with a list of parts.
        Value::Array(parts) => {
            for part in parts {
                answer.parts.extend(filled_at(part, "text").map(Part::text));
                add_image(&mut answer, part);
            }
        }
        _ => {}
    }
    // OpenRouter sends images beside the text.
    for image in message["images"].as_array().into_iter().flatten() {
        add_image(&mut answer, image);
    }
    add_audio(&mut answer, &message["audio"]);
    let calls = message["tool_calls"].as_array().map(Vec::as_slice).unwrap_or_default();
    for (index, call) in calls.iter().enumerate() {
        let is_last = finish == Finish::Length && index + 1 == calls.len();
        let mut made = called(&call["function"], is_last);
        made.provider_call_id = filled_at(call, "id").map(str::to_owned);
        answer.calls.push(made);
    }
    // The older form, with at most one call in an answer.
    if calls.is_empty() && message["function_call"].is_object() {
        answer.calls.push(called(&message["function_call"], finish == Finish::Length));
    }
    Ok(finished(answer, finish))
}

/// Adds the image of a part, if it is one.
fn add_image(answer: &mut PolicyAnswer, part: &Value) {
    if let Some(address) = text_at(&part["image_url"], "url") {
        add_address(answer, address, None, Modality::Image);
    }
}

/// Adds spoken words, and their text.
fn add_audio(answer: &mut PolicyAnswer, audio: &Value) {
    answer.parts.extend(filled_at(audio, "transcript").map(Part::text));
    if let Some(data) = filled_at(audio, "data") {
        add_bytes(answer, data, None, Modality::Audio);
    }
}

/// Builds a call of a function. The last call before the token limit is cut off unless its arguments parse as
/// an object.
fn called(function: &Value, ends_at_limit: bool) -> AnsweredCall {
    let name = text_at(function, "name").unwrap_or_default();
    let (arguments, is_complete) = match &function["arguments"] {
        Value::String(text) => text_arguments(text),
        value => (value_arguments(value), false),
    };
    AnsweredCall { cut_off: ends_at_limit && !is_complete, ..AnsweredCall::new(name, arguments) }
}
