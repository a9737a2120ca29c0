//! What a request does not say, or says in another way than the conversation did.
//!
//! Rendering never drops anything silently. Whatever only another provider or model would understand, and whatever had to be
//! said in words because the provider has no other form for it, is listed here.

use std::fmt;

use backstitch_core::id::CallId;

/// Why a raw payload is not sent back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DropReason {
    /// Another provider made it.
    OtherProvider,
    /// Another model made it.
    OtherModel,
    /// It was made behind another address.
    OtherEndpoint,
    /// It is not of a form that may be sent back.
    NotUnderstood,
    /// The calls in it are not those of the conversation.
    CallsDiffer,
    /// An id in it was used before.
    IdsRepeat,
    /// It held the key, and was not kept.
    Secret,
}

/// One thing that a request does not say as the conversation did.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Departure {
    /// The raw payload of a turn is left out; the turn is rendered from its words and calls.
    PayloadDropped {
        /// The turn.
        turn: u64,
        /// Who made the payload.
        provider: String,
        /// With which model.
        model: String,
        /// Why.
        reason: DropReason,
    },
    /// A result is left out, since nobody made the call.
    OrphanResult {
        /// The call that it names.
        call: CallId,
    },
    /// A call without a result is shown as interrupted.
    Interrupted {
        /// The call.
        call: CallId,
    },
    /// A call without a result is left out.
    Skipped {
        /// The call.
        call: CallId,
    },
    /// Media is described in words.
    Described {
        /// The address of the media.
        url: String,
    },
    /// Thinking is not asked for, since the thoughts that led to the last calls are not there.
    ThinkingLeftOut,
    /// Words were added where a provider wants a user to speak.
    Nudged,
    /// The schema of the answer is told in words, since the provider does not hold a model to it.
    OutputInWords,
}

impl fmt::Display for DropReason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::OtherProvider => "another provider made it",
            Self::OtherModel => "another model made it",
            Self::OtherEndpoint => "it was made behind another address",
            Self::NotUnderstood => "it is not of a form that may be sent back",
            Self::CallsDiffer => "the calls in it are not those of the conversation",
            Self::IdsRepeat => "an id in it was used before",
            Self::Secret => "it held the key, and was not kept",
        })
    }
}

impl fmt::Display for Departure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PayloadDropped { turn, provider, model, reason } => {
                write!(formatter, "the payload of turn {turn} by {provider}:{model} is left out: {reason}")
            }
            Self::OrphanResult { call } => {
                write!(formatter, "the result of {call} is left out: nobody made the call")
            }
            Self::Interrupted { call } => write!(formatter, "call {call} is shown as interrupted"),
            Self::Skipped { call } => write!(formatter, "call {call} is left out: it has no result"),
            Self::Described { url } => write!(formatter, "{url} is described in words"),
            Self::ThinkingLeftOut => formatter.write_str(
                "thinking is not asked for: the thoughts that led to the last calls are not there",
            ),
            Self::Nudged => formatter.write_str("a word was added where a user has to speak"),
            Self::OutputInWords => formatter.write_str("the schema of the answer is told in words"),
        }
    }
}

/// Everything in which a request departs from the conversation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RenderReport {
    /// In the order of the conversation.
    pub departures: Vec<Departure>,
    /// How many media items are sent as such.
    pub media: usize,
}

impl RenderReport {
    pub(crate) fn note(&mut self, departure: Departure) {
        self.departures.push(departure);
    }

    /// The payloads that were dropped.
    pub fn dropped(&self) -> impl Iterator<Item = &Departure> {
        self.departures.iter().filter(|departure| matches!(departure, Departure::PayloadDropped { .. }))
    }
}
