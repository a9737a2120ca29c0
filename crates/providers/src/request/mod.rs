//! The shared part of rendering a conversation as a request.
//!
//! A [`Thread`] is the conversation, [`RequestOptions`] configure the request, and a dialect renders both.
//! Nothing is left out silently: a [`RenderReport`] lists every departure.

pub(crate) mod legal;
mod limits;
mod media;
mod options;
mod plan;
mod refused;
mod report;
mod sampling;
mod schema;
mod state;
mod thread;

use backstitch_core::message::{Large, Part};
use backstitch_core::tool::ToolSpec;
use serde_json::{Map, Value};

pub use limits::{RequestLimits, RequestTooLarge};
pub(crate) use media::{IMAGES, MIB, Media, MediaRules, MediaSupport, PDF, Piece, UsedObject};
pub use media::{MediaProblem, UnsupportedMedia};
pub(crate) use options::OptionProblem;
pub use options::{
    CacheMarks, MediaBytes, MediaMode, OpenCalls, ReasoningSummary, RefusedOption, RequestOptions,
    StructuredOutput, ThinkingBudget, UnsupportedMediaPolicy,
};
pub(crate) use plan::{PlannedCall, PlannedTurn, RawCall, RawCalls, plan_turn};
pub use refused::RefusedPart;
pub use report::{Departure, DropReason, RenderReport};
pub(crate) use sampling::add_fields;
pub use sampling::{SamplingOptions, ToolChoice};
pub(crate) use schema::{OutputSchema, SchemaDialect, in_words};
pub(crate) use state::RenderState;
pub use thread::{InputMessage, Thread, ThreadCall, ThreadEntry, ThreadTurn};

use crate::provider::ModelTarget;

/// The version of the renderer. The journal holds it beside the hash of each request.
pub const RENDERER: &str = "wire/3";

/// The text of a user message that is added where a provider requires one and the conversation has none.
pub(crate) const NUDGE: &str = "Continue.";

/// A request could not be rendered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RenderError {
    /// Content is in the store and was not hydrated.
    #[error("{what} of the conversation is in the store; hydrate the transcript before rendering it")]
    NotHydrated {
        /// The kind of the content.
        what: &'static str,
    },
    /// The provider does not accept some media.
    #[error(transparent)]
    Media(#[from] UnsupportedMedia),
    /// The provider does not support an option.
    #[error(transparent)]
    Option(#[from] RefusedOption),
}

/// A request, with its departures from the conversation.
#[derive(Debug, Clone, PartialEq)]
pub struct RenderedRequest {
    /// The body.
    pub body: Value,
    /// How the body departs from the conversation.
    pub report: RenderReport,
}

/// All inputs of a renderer but the conversation.
pub(crate) struct RequestInput<'a> {
    pub(crate) tools: Vec<&'a ToolSpec>,
    pub(crate) target: &'a ModelTarget,
    pub(crate) options: &'a RequestOptions,
    /// The schema of the answer, if the provider enforces it.
    pub(crate) output: Option<OutputSchema>,
    /// The text of the system message.
    pub(crate) system: String,
}

/// Renders texts and media as pieces, with labels. Texts of white space only are left out, since some
/// providers refuse them.
pub(crate) fn pieces<'a>(
    parts: impl IntoIterator<Item = &'a Part>,
    media: &mut Media<'_>,
) -> Result<Vec<Piece>, RenderError> {
    let mut pieces = Vec::new();
    for part in parts {
        match part {
            Part::Text(part) => {
                let text = inline(&part.text)?;
                if !text.trim().is_empty() {
                    pieces.push(Piece::Text(text.to_owned()));
                }
            }
            Part::Media(part) => {
                pieces.extend(media.label(part).map(Piece::Text));
                pieces.push(media.send(part)?);
            }
        }
    }
    Ok(pieces)
}

/// Renders texts and media in the form of a provider.
pub(crate) fn render_pieces<'a>(
    parts: impl IntoIterator<Item = &'a Part>,
    media: &mut Media<'_>,
    form: fn(Piece) -> Value,
) -> Result<Vec<Value>, RenderError> {
    Ok(pieces(parts, media)?.into_iter().map(form).collect())
}

/// Renders parts as text, with media described in words: for places where no provider accepts media.
pub(crate) fn words<'a>(
    parts: impl IntoIterator<Item = &'a Part>,
    report: &mut RenderReport,
) -> Result<String, RenderError> {
    let mut texts = Vec::new();
    for part in parts {
        match part {
            Part::Text(part) => texts.push(inline(&part.text)?.to_owned()),
            Part::Media(part) => texts.push(media::described(part, report)),
        }
    }
    texts.retain(|text| !text.trim().is_empty());
    Ok(texts.join("\n"))
}

/// The joined texts of pieces; `None` if one of them is media.
pub(crate) fn only_text(pieces: &[Piece]) -> Option<String> {
    let texts = pieces.iter().map(|piece| match piece {
        Piece::Text(text) => Some(text.as_str()),
        Piece::Url { .. } | Piece::Bytes { .. } => None,
    });
    Some(texts.collect::<Option<Vec<&str>>>()?.join("\n"))
}

/// An object of fields. They are moved; `json!` copies every value that is not written in it.
pub(crate) fn fields<const N: usize>(fields: [(&str, Value); N]) -> Value {
    Value::Object(fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

/// An object of the fields that are neither null nor an empty list; null if there are none.
pub(crate) fn object<const N: usize>(fields: [(&str, Value); N]) -> Value {
    let is_empty = |value: &Value| value.is_null() || value.as_array().is_some_and(Vec::is_empty);
    let present = fields.into_iter().filter(|(_, value)| !is_empty(value));
    let fields: Map<String, Value> = present.map(|(name, value)| (name.to_owned(), value)).collect();
    if fields.is_empty() { Value::Null } else { fields.into() }
}

/// Whether a value is a text that is not empty.
pub(crate) fn is_filled(value: &Value) -> bool {
    value.as_str().is_some_and(|text| !text.is_empty())
}

fn inline(text: &Large<std::sync::Arc<str>>) -> Result<&str, RenderError> {
    text.inline().map(AsRef::as_ref).ok_or(RenderError::NotHydrated { what: "a text" })
}

/// The role of the last message.
pub(crate) fn last_role(messages: &[Value]) -> Option<&str> {
    messages.last()?["role"].as_str()
}

pub(crate) fn nudge(report: &mut RenderReport) -> &'static str {
    report.note(Departure::Nudged);
    NUDGE
}

/// The schema of a tool's parameters, with the type `object` if it has none.
pub(crate) fn parameters(tool: &ToolSpec) -> Value {
    let mut schema = tool.parameters.as_object().cloned().unwrap_or_default();
    if !schema.contains_key("type") {
        schema.insert("type".to_owned(), Value::from("object"));
    }
    Value::Object(schema)
}
