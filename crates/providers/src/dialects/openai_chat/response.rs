//! Parses an answer into parts and calls.

use backstitch_core::message::{Arguments, Modality, Part};
use backstitch_core::ports::{AnsweredCall, Finish, PolicyAnswer};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::DIALECT;
use crate::answer::FinishMeaning::{Length, Malformed, Whole, Withheld};
use crate::answer::{
    FinishReasons, Payload, SplitText, add_address, add_bytes, body_of, finished, of_reason, text_at,
    without_thoughts,
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
    answer(&Payload::read(choice.message.get(), target)?, choice.finish_reason.as_deref(), &usage, target)
}

/// Builds the answer from its message. An answer that cannot be used costs what it reports.
pub(super) fn answer(
    payload: &Payload<'_>,
    finish_reason: Option<&str>,
    usage: &Value,
    target: &ModelTarget,
) -> Result<PolicyAnswer, ProviderError> {
    let usage = DIALECT.usage.amounts(usage);
    let answer = content(payload, finish_reason, target).map_err(|error| error.costing(usage))?;
    Ok(PolicyAnswer { usage, ..answer })
}

fn content(
    payload: &Payload<'_>,
    finish_reason: Option<&str>,
    target: &ModelTarget,
) -> Result<PolicyAnswer, ProviderError> {
    let message = &payload.json;
    if let Some(refusal) = message["refusal"].as_str().filter(|text| !text.is_empty()) {
        return Err(ProviderError::new(target.provider, ErrorKind::ContentFilter, refusal));
    }
    let finish = of_reason(target.provider, FINISH_REASONS, finish_reason, None)?;
    let mut answer = PolicyAnswer {
        provider: Some(target.sidecar(&payload.text, finish_reason)),
        ..PolicyAnswer::default()
    };
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
                let text = text_at(part, "text").filter(|text| !text.is_empty());
                answer.parts.extend(text.map(Part::text));
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
        made.provider_call_id = text_at(call, "id").filter(|id| !id.is_empty()).map(str::to_owned);
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
    let transcript = text_at(audio, "transcript").filter(|text| !text.is_empty());
    answer.parts.extend(transcript.map(Part::text));
    if let Some(data) = text_at(audio, "data").filter(|data| !data.is_empty()) {
        add_bytes(answer, data, None, Modality::Audio);
    }
}

/// Builds a call of a function. The last call before the token limit is cut off unless its arguments parse as
/// an object.
fn called(function: &Value, ends_at_limit: bool) -> AnsweredCall {
    let name = text_at(function, "name").unwrap_or_default();
    let given = &function["arguments"];
    let arguments = match given {
        Value::String(text) if text.trim().is_empty() => Arguments::none(),
        Value::String(text) => Arguments::from_text(text.as_str()),
        Value::Object(object) => Arguments::from_object(object.clone()),
        Value::Null => Arguments::none(),
        other => Arguments::from_text(other.to_string()),
    };
    let is_complete = given.as_str().is_some_and(|text| !text.trim().is_empty()) && arguments.is_parsable();
    AnsweredCall { cut_off: ends_at_limit && !is_complete, ..AnsweredCall::new(name, arguments) }
}
