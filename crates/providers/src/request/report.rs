//! Differences between a request and the conversation.
//!
//! Rendering never drops anything silently. The report lists all content that only another provider or model
//! would understand, and all content that is described in words because the provider has no other form for
//! it.

use backstitch_core::id::CallId;

use super::refused::RefusedPart;

/// Why a raw payload is not sent back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum DropReason {
    /// It is from another provider.
    #[error("it is from another provider")]
    OtherProvider,
    /// It is from another model.
    #[error("it is from another model")]
    OtherModel,
    /// It is from another endpoint.
    #[error("it is from another endpoint")]
    OtherEndpoint,
    /// It has an unknown form.
    #[error("it has an unknown form")]
    NotUnderstood,
    /// Its calls are not those of the conversation.
    #[error("its calls are not those of the conversation")]
    CallsDiffer,
    /// An id of a call in it was used before.
    #[error("an id in it was used before")]
    IdsRepeat,
    /// It contained the key, and was not stored.
    #[error("it contained the key, and was not stored")]
    Secret,
}

/// A difference between a request and the conversation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Departure {
    /// The raw payload of a turn is left out; the turn is rendered from its parts and calls.
    #[error("the payload of turn {turn} by {provider}:{model} is left out: {reason}")]
    PayloadDropped {
        /// The turn.
        turn: u64,
        /// The provider of the payload.
        provider: String,
        /// The model of the payload.
        model: String,
        /// The cause.
        reason: DropReason,
    },
    /// A result is left out, because there is no such call.
    #[error("the result of {call} is left out: there is no such call")]
    OrphanResult {
        /// The call id of the result.
        call: CallId,
    },
    /// A call without a result is shown as interrupted.
    #[error("call {call} is shown as interrupted")]
    Interrupted {
        /// The call.
        call: CallId,
    },
    /// A call without a result is left out.
    #[error("call {call} is left out: it has no result")]
    Skipped {
        /// The call.
        call: CallId,
    },
    /// Media is described in words.
    #[error("{url} is described in words")]
    Described {
        /// The address of the media.
        url: String,
    },
    /// Thinking is not requested, because the thoughts before the last calls are missing.
    #[error("thinking is left out: the thoughts before the last calls are missing")]
    ThinkingLeftOut,
    /// A user message was added, because the provider requires one.
    #[error("a user message was added: the provider requires one")]
    Nudged,
    /// A part is left out or has another form, because the server refused it before.
    #[error("{0} is not sent as before: the server refused it")]
    Refused(RefusedPart),
    /// The schema of the answer is described in the system message, because the provider does not enforce it.
    #[error("the schema of the answer is in the system message")]
    OutputInWords,
}

/// All differences between a request and the conversation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RenderReport {
    /// The differences, in the order of the conversation.
    pub departures: Vec<Departure>,
    /// The number of media items that are not described in words.
    pub media: usize,
    /// The length of the media that is sent as bytes, in base64.
    pub media_bytes: usize,
}

impl RenderReport {
    pub(crate) fn note(&mut self, departure: Departure) {
        self.departures.push(departure);
    }

    /// Counts media that is sent as bytes, in base64.
    pub(crate) fn count_bytes(&mut self, data: Option<&str>) {
        self.media += usize::from(data.is_some());
        self.media_bytes += data.map_or(0, str::len);
    }

    /// Adds the differences of later parts of the request.
    pub(crate) fn append(&mut self, later: Self) {
        self.departures.extend(later.departures);
        self.media += later.media;
        self.media_bytes += later.media_bytes;
    }

    /// The dropped payloads.
    pub fn dropped(&self) -> impl Iterator<Item = &Departure> {
        self.departures.iter().filter(|departure| matches!(departure, Departure::PayloadDropped { .. }))
    }
}
