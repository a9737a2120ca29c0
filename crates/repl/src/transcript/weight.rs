//! Estimates the size of messages without serializing them.

use backstitch_core::journal::InnerMessage;
use backstitch_core::message::{Content, Large, Part};
use serde_json::Value as Json;

/// The overhead of a message, for any provider.
const ENVELOPE: u64 = 16;
/// The approximate weight of an image or a page.
const MEDIA: u64 = 4_000;

/// The size of a message, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Weight;

impl Weight {
    /// The approximate size of a message in a request, in bytes.
    pub(crate) fn of(message: &InnerMessage) -> u64 {
        let content = match &message.message.content {
            Content::Parts(parts) => parts.parts.iter().map(Self::of_part).sum(),
            Content::OptionCall(call) => {
                let arguments = match call.arguments.stored() {
                    Some(stored) => stored.length,
                    None => call.arguments.object().map_or_else(
                        || call.arguments.text().len() as u64,
                        |object| object.iter().map(|(key, value)| key.len() as u64 + 4 + json(value)).sum(),
                    ),
                };
                call.option_name.len() as u64 + arguments
            }
            Content::OptionResult(_) => Self::of_result(message),
        };
        ENVELOPE + content
    }

    /// The approximate size of the content of a result, in bytes; 0 if the message is not a result.
    pub(crate) fn of_result(message: &InnerMessage) -> u64 {
        let Some(result) = message.message.option_result() else { return 0 };
        let value = match &result.result {
            Large::Inline(Json::String(text)) => text.len() as u64,
            Large::Inline(value) => json(value),
            Large::Object(object) => object.length,
        };
        let error = result.error_message.as_ref().map_or(0, |message| message.len() as u64);
        value + error + result.parts.iter().map(Self::of_part).sum::<u64>()
    }

    /// The approximate number of tokens of a number of bytes.
    pub(crate) fn tokens(bytes: u64) -> u64 {
        bytes.div_ceil(4)
    }

    fn of_part(part: &Part) -> u64 {
        match part {
            Part::Media(_) => MEDIA,
            Part::Text(text) => match &text.text {
                Large::Inline(text) => text.len() as u64,
                Large::Object(object) => object.length,
            },
        }
    }
}

/// The approximate size of the JSON of a value, in bytes.
fn json(value: &Json) -> u64 {
    match value {
        Json::Null | Json::Bool(_) => 4,
        Json::Number(_) => 6,
        Json::String(text) => text.len() as u64 + 2,
        Json::Array(items) => 2 + items.iter().map(|item| json(item) + 1).sum::<u64>(),
        Json::Object(fields) => {
            2 + fields.iter().map(|(key, value)| key.len() as u64 + 4 + json(value)).sum::<u64>()
        }
    }
}
