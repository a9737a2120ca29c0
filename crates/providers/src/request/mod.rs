//! From a conversation to a request: what is the same for every provider.
//!
//! A [`Thread`] is the conversation, [`RequestOptions`] say how it is to be put, and a dialect renders both. Nothing is left
//! out silently: a [`RenderReport`] lists every departure.

pub(crate) mod legal;
mod limits;
mod media;
mod options;
mod plan;
mod report;
mod schema;
mod thread;

use backstitch_core::message::{Large, Part};
use backstitch_core::tool::ToolSpec;
use serde_json::Value;

pub use limits::{RequestLimits, RequestTooLarge};
pub(crate) use media::{IMAGES, MIB, Media, MediaEncoding, MediaRules, MediaSupport, PDF};
pub use media::{MediaProblem, UnsupportedMedia};
pub(crate) use options::OptionProblem;
pub use options::{
    CacheMarks, MediaBytes, MediaMode, OpenCalls, RefusedOption, RequestOptions, StructuredOutput,
    ThinkingBudget, UnsupportedMediaPolicy,
};
pub(crate) use plan::{PlannedCall, PlannedEntry, PlannedTurn, RawCall, plan};
pub use report::{Departure, DropReason, RenderReport};
pub(crate) use schema::{ANNOTATIONS, CONDITIONS, FORMATS, OutputSchema, SchemaDialect, in_words};
pub use thread::{InputMessage, Thread, ThreadCall, ThreadEntry, ThreadTurn};

use crate::provider::ModelTarget;

/// The version of the renderer. It stands in the journal beside the hash of each request.
pub const RENDERER: &str = "wire/2";

/// What is said where a provider wants a user to speak and nobody did.
pub(crate) const NUDGE: &str = "Continue.";

/// A request could not be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RenderError {
    /// Content lies in the store and was not brought back.
    #[error("{what} of the conversation lies in the store; hydrate the transcript before it is rendered")]
    NotHydrated {
        /// What it is.
        what: &'static str,
    },
    /// The provider does not take some media.
    #[error(transparent)]
    Media(#[from] UnsupportedMedia),
    /// The provider cannot honour an option.
    #[error(transparent)]
    Option(#[from] RefusedOption),
}

/// A request, and in what it departs from the conversation.
#[derive(Debug, Clone, PartialEq)]
pub struct RenderedRequest {
    /// The body.
    pub body: Value,
    /// What the body does not say as the conversation did.
    pub report: RenderReport,
}

/// Everything that a request is made of.
pub(crate) struct RequestInput<'a> {
    pub(crate) thread: &'a Thread<'a>,
    pub(crate) tools: &'a [&'a ToolSpec],
    pub(crate) target: &'a ModelTarget,
    pub(crate) options: &'a RequestOptions,
    /// What the answer has to look like, where the provider holds a model to it.
    pub(crate) output: Option<&'a OutputSchema>,
    /// What is added to the system message.
    pub(crate) added: Option<&'a Part>,
}

impl<'a> RequestInput<'a> {
    /// The parts of the system message.
    pub(crate) fn system(&self) -> impl Iterator<Item = &'a Part> {
        self.thread.system.iter().copied().chain(self.added)
    }
}

/// One piece of content, before it has the form of any provider.
pub(crate) enum Piece {
    Text(String),
    Media { sent: MediaEncoding, modality: backstitch_core::message::Modality },
}

/// Words and media as pieces, labels included. Words of nothing but space are left out, since some providers refuse them.
pub(crate) fn pieces<'a>(
    parts: impl IntoIterator<Item = &'a Part>,
    media: &mut Media<'_>,
    report: &mut RenderReport,
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
                pieces.push(match media.send(part, report)? {
                    MediaEncoding::Words(text) => Piece::Text(text),
                    sent => Piece::Media { sent, modality: part.modality },
                });
            }
        }
    }
    Ok(pieces)
}

/// Words, and media in words: for places where no provider takes media.
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

/// Whether pieces are words alone.
pub(crate) fn only_text(pieces: &[Piece]) -> Option<String> {
    let texts: Option<Vec<&str>> = pieces
        .iter()
        .map(|piece| match piece {
            Piece::Text(text) => Some(text.as_str()),
            Piece::Media { .. } => None,
        })
        .collect();
    texts.map(|texts| texts.join("\n"))
}

fn inline(text: &Large<std::sync::Arc<str>>) -> Result<&str, RenderError> {
    text.inline().map(AsRef::as_ref).ok_or(RenderError::NotHydrated { what: "a text" })
}

pub(crate) fn nudge(report: &mut RenderReport) -> &'static str {
    report.note(Departure::Nudged);
    NUDGE
}

/// The schema of a tool's parameters, which says that it is one of an object.
pub(crate) fn parameters(tool: &ToolSpec) -> Value {
    let mut schema = tool.parameters.as_object().cloned().unwrap_or_default();
    if !schema.contains_key("type") {
        schema.insert("type".to_owned(), Value::from("object"));
    }
    Value::Object(schema)
}
