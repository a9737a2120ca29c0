//! Parses an answer into parts and calls.

use std::collections::BTreeMap;

use backstitch_core::message::{Arguments, Part};
use backstitch_core::ports::{AnsweredCall, Finish, PolicyAnswer};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::DIALECT;
use crate::answer::FinishMeaning::{ContextFull, Length, Pause, Whole, Withheld};
use crate::answer::{FinishReasons, Payload, body_of, finished, of_reason, text_at};
use crate::error::ProviderError;
use crate::provider::ModelTarget;

/// `stop_reason` of Messages.
pub(super) const FINISH_REASONS: FinishReasons = &[
    ("end_turn", Whole),
    ("stop_sequence", Whole),
    ("tool_use", Whole),
    ("max_tokens", Length),
    ("pause_turn", Pause),
    ("refusal", Withheld),
    ("model_context_window_exceeded", ContextFull),
];

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

/// Parses a complete answer.
pub(super) fn parse(body: &str, target: &ModelTarget) -> Result<PolicyAnswer, ProviderError> {
    let Body { content, stop_reason, stop_details, usage } = body_of(body, target)?;
    let end = End { stop_reason, stop_details, usage };
    answer(&Payload::read(content.get(), target)?, &end, &BTreeMap::new(), target)
}

/// How an answer ended.
#[derive(Default)]
pub(super) struct End {
    pub(super) stop_reason: Option<String>,
    pub(super) stop_details: Value,
    pub(super) usage: Value,
}

/// Builds the answer from its content. `texts` are the received texts of arguments, by the index of their
/// block. An answer that cannot be used costs what it reports.
pub(super) fn answer(
    payload: &Payload<'_>,
    end: &End,
    texts: &BTreeMap<usize, String>,
    target: &ModelTarget,
) -> Result<PolicyAnswer, ProviderError> {
    let usage = DIALECT.usage.amounts(&end.usage);
    let answer = content(payload, end, texts, target).map_err(|error| error.costing(usage))?;
    Ok(PolicyAnswer { usage, ..answer })
}

fn content(
    payload: &Payload<'_>,
    end: &End,
    texts: &BTreeMap<usize, String>,
    target: &ModelTarget,
) -> Result<PolicyAnswer, ProviderError> {
    let reason = end.stop_reason.as_deref();
    let finish =
        of_reason(target.provider, FINISH_REASONS, reason, text_at(&end.stop_details, "explanation"))?;
    let blocks = payload.items(target)?;
    let mut answer =
        PolicyAnswer { provider: Some(target.sidecar(&payload.text, reason)), ..PolicyAnswer::default() };
    let last = blocks.len().saturating_sub(1);
    for (index, block) in blocks.iter().enumerate() {
        match text_at(block, "type") {
            Some("text") => {
                let text = text_at(block, "text").filter(|text| !text.is_empty());
                answer.parts.extend(text.map(Part::text));
            }
            Some("tool_use") => {
                let text = texts.get(&index);
                let arguments = arguments(block, text);
                // A text that parses as an object is complete. Arguments received as an object may be cut off
                // and still parse.
                let is_complete = text.is_some_and(|text| !text.trim().is_empty()) && arguments.is_parsable();
                let mut call = AnsweredCall::new(text_at(block, "name").unwrap_or_default(), arguments);
                call.cut_off = finish == Finish::Length && index == last && !is_complete;
                call.provider_call_id = text_at(block, "id").map(str::to_owned);
                answer.calls.push(call);
            }
            _ => {}
        }
    }
    Ok(finished(answer, finish))
}

fn arguments(block: &Value, text: Option<&String>) -> Arguments {
    match (text, &block["input"]) {
        (Some(text), _) if text.trim().is_empty() => Arguments::none(),
        (Some(text), _) => Arguments::from_text(text.as_str()),
        (None, Value::Object(input)) => Arguments::from_object(input.clone()),
        (None, Value::Null) => Arguments::none(),
        (None, other) => Arguments::from_text(other.to_string()),
    }
}
