//! Parses an answer into parts and calls.

use std::collections::BTreeMap;

use backstitch_core::message::Part;
use backstitch_core::ports::{AnsweredCall, Finish, PolicyAnswer};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::DIALECT;
use crate::answer::FinishMeaning::{ContextFull, Length, Pause, Whole, Withheld};
use crate::answer::{
    FinishReasons, Payload, body_of, filled_at, finished, of_reason, text_arguments, text_at, value_arguments,
};
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
    let payload = Payload::read(content.get(), target)?;
    DIALECT.usage.charge(&end.usage, answer(&payload, &end, &BTreeMap::new(), target))
}

/// How an answer ended.
#[derive(Default)]
pub(super) struct End {
    pub(super) stop_reason: Option<String>,
    pub(super) stop_details: Value,
    pub(super) usage: Value,
}

/// Builds the answer from its content. `texts` are the received texts of arguments, by the index of their
/// block.
pub(super) fn answer(
    payload: &Payload<'_>,
    end: &End,
    texts: &BTreeMap<usize, String>,
    target: &ModelTarget,
) -> Result<PolicyAnswer, ProviderError> {
    let reason = end.stop_reason.as_deref();
    let finish =
        of_reason(target.provider, FINISH_REASONS, reason, text_at(&end.stop_details, "explanation"))?;
    let blocks = payload.items(target)?;
    let mut answer = payload.answer(target, reason);
    let last = blocks.len().saturating_sub(1);
    for (index, block) in blocks.iter().enumerate() {
        match text_at(block, "type") {
            Some("text") => answer.parts.extend(filled_at(block, "text").map(Part::text)),
            Some("tool_use") => {
                let (arguments, is_complete) = match texts.get(&index) {
                    Some(text) => text_arguments(text),
                    None => (value_arguments(&block["input"]), false),
                };
                answer.calls.push(AnsweredCall {
                    cut_off: finish == Finish::Length && index == last && !is_complete,
                    provider_call_id: text_at(block, "id").map(str::to_owned),
                    ..AnsweredCall::new(text_at(block, "name").unwrap_or_default(), arguments)
                });
            }
            _ => {}
        }
    }
    Ok(finished(answer, finish))
}
