//! What reading answers has in common.
//!
//! Unknown fields, items and events are accepted and kept in the raw payload. What is missing where it is needed makes the
//! answer malformed, which is an error and never a guess.

mod finish;
mod sse;
mod usage;

use std::borrow::Cow;

use backstitch_core::json::JsonLimits;
pub use backstitch_core::ports::Delta;
use backstitch_core::ports::PolicyAnswer;
use serde::Deserialize;
use serde_json::Value;

pub use finish::FinishMeaning;
pub(crate) use finish::{FinishReasons, finished, of_meaning, of_reason};
pub use sse::{EventTooLarge, SseDecoder, SseEvent};
pub(crate) use usage::UsageFields;

use crate::error::ProviderError;
use crate::provider::ModelTarget;

/// Puts an answer together from the events of a stream.
pub trait StreamReader: Send {
    /// Takes in the next event, and adds what can be shown of it to `deltas`.
    fn take_in(&mut self, event: &SseEvent, deltas: &mut Vec<Delta>) -> Result<(), ProviderError>;

    /// Whether the provider has said that this was all.
    fn is_complete(&self) -> bool;

    /// The answer. A stream that ended before the provider said that this was all is an error.
    fn finish(self: Box<Self>) -> Result<PolicyAnswer, ProviderError>;
}

/// Reads JSON of a provider within limits.
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
    /// Reads a payload that came in one piece.
    pub(crate) fn read(text: &'a str, target: &ModelTarget) -> Result<Self, ProviderError> {
        Ok(Self { text: text.into(), json: body_of(text, target)? })
    }

    /// Writes a payload that was put together from pieces. It has to keep the limits of one that is read.
    pub(crate) fn write(json: Value, target: &ModelTarget) -> Result<Self, ProviderError> {
        let text = json.to_string();
        check_limits(&text, target)?;
        Ok(Self { text: text.into(), json })
    }

    /// The items of a payload that is a list.
    pub(crate) fn items(&self, target: &ModelTarget) -> Result<&[Value], ProviderError> {
        let malformed = || ProviderError::malformed(target.provider, "the answer's content is not a list");
        self.json.as_array().map(Vec::as_slice).ok_or_else(malformed)
    }
}

/// The JSON of an event.
pub(crate) fn event_json(event: &SseEvent, target: &ModelTarget) -> Result<Value, ProviderError> {
    body_of(&event.data, target)
}

pub(crate) fn text_at<'a>(value: &'a Value, name: &str) -> Option<&'a str> {
    value.get(name)?.as_str()
}
