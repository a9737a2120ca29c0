//! Shared code for reading answers.
//!
//! Unknown fields, items and events are accepted and kept in the raw payload. A missing required field makes
//! the answer malformed: an error, never a guess.

mod finish;
mod media;
mod merge;
mod sse;
mod thoughts;
mod usage;

use std::borrow::Cow;

use backstitch_core::journal::ProviderSidecar;
use backstitch_core::json::JsonLimits;
use backstitch_core::message::Arguments;
pub use backstitch_core::ports::Delta;
use backstitch_core::ports::PolicyAnswer;
use serde::Deserialize;
use serde_json::Value;

pub use finish::FinishMeaning;
pub(crate) use finish::{FinishReasons, finished, of_meaning, of_reason};
pub(crate) use media::{add_address, add_bytes};
pub(crate) use merge::merge;
pub use sse::{EventTooLarge, SseDecoder, SseEvent};
pub(crate) use thoughts::{SplitText, ThoughtSplitter, without_thoughts};
pub(crate) use usage::UsageFields;

use crate::error::ProviderError;
use crate::provider::ModelTarget;

/// Assembles an answer from the events of a stream.
pub trait StreamReader: Send {
    /// Processes the next event, and appends its displayable content to `deltas`. Returns whether the provider
    /// has marked the end of the answer.
    fn feed(&mut self, event: &SseEvent, deltas: &mut Vec<Delta>) -> Result<bool, ProviderError>;

    /// Returns the answer. Fails if the stream ended before the provider marked its end.
    fn finish(self: Box<Self>) -> Result<PolicyAnswer, ProviderError>;
}

/// Parses JSON of a provider within the limits of [`JsonLimits`].
pub(crate) fn body_of<'a, T: Deserialize<'a>>(
    text: &'a str,
    target: &ModelTarget,
) -> Result<T, ProviderError> {
    check_limits(text, target)?;
    serde_json::from_str(text)
        .map_err(|problem| ProviderError::malformed(target.provider, problem.to_string()))
}

fn check_limits(text: &str, target: &ModelTarget) -> Result<(), ProviderError> {
    let checked = JsonLimits::default().check(text.as_bytes());
    checked.map_err(|problem| ProviderError::malformed(target.provider, problem.to_string()))
}

/// The part of an answer that is kept byte for byte, and its JSON.
pub(crate) struct Payload<'a> {
    pub(crate) text: Cow<'a, str>,
    pub(crate) json: Value,
}

impl<'a> Payload<'a> {
    /// Reads a payload that was received as one text.
    pub(crate) fn read(text: &'a str, target: &ModelTarget) -> Result<Self, ProviderError> {
        Ok(Self { text: text.into(), json: body_of(text, target)? })
    }

    /// Writes a payload that was assembled from events. The limits for received payloads apply to it too.
    pub(crate) fn write(json: Value, target: &ModelTarget) -> Result<Self, ProviderError> {
        let text = json.to_string();
        check_limits(&text, target)?;
        Ok(Self { text: text.into(), json })
    }

    /// An answer that keeps the payload, without its content.
    pub(crate) fn answer(&self, target: &ModelTarget, finish_reason: Option<&str>) -> PolicyAnswer {
        let sidecar = ProviderSidecar {
            provider: target.provider.to_string(),
            model: target.model.clone(),
            endpoint: target.endpoint.clone(),
            payload: Some((&*self.text).into()),
            finish_reason: finish_reason.map(str::to_owned),
            ..ProviderSidecar::default()
        };
        PolicyAnswer { provider: Some(sidecar), ..PolicyAnswer::default() }
    }

    /// The items of a payload that is a list. Fails for any other payload.
    pub(crate) fn items(&self, target: &ModelTarget) -> Result<&[Value], ProviderError> {
        let malformed = || ProviderError::malformed(target.provider, "the answer's content is not a list");
        self.json.as_array().map(Vec::as_slice).ok_or_else(malformed)
    }
}

pub(crate) fn text_at<'a>(value: &'a Value, name: &str) -> Option<&'a str> {
    value.get(name)?.as_str()
}

/// A text field that is not empty.
pub(crate) fn filled_at<'a>(value: &'a Value, name: &str) -> Option<&'a str> {
    text_at(value, name).filter(|text| !text.is_empty())
}

/// Arguments that were received as a text, and whether they are complete: a text that parses as an object is.
pub(crate) fn text_arguments(text: &str) -> (Arguments, bool) {
    if text.trim().is_empty() {
        return (Arguments::none(), false);
    }
    let arguments = Arguments::from_text(text);
    let is_complete = arguments.is_parsable();
    (arguments, is_complete)
}

/// Arguments that were received as a value. They may be cut off and still parse.
pub(crate) fn value_arguments(value: &Value) -> Arguments {
    match value {
        Value::Object(object) => Arguments::from_object(object.clone()),
        Value::Null => Arguments::none(),
        other => Arguments::from_text(other.to_string()),
    }
}
