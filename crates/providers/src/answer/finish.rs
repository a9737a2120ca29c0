//! Finish reasons: what the documented words of providers mean.
//!
//! The tables of the dialects hold every reason that the providers document (as of 2026-11-15, from the type
//! definitions of their SDKs on npm: `openai` 6.49.0, `@anthropic-ai/sdk` 1.8.0, `@google/genai` 2.32.0, and
//! from their guides). `docs/providers.md` shows them. A word that is in no table is kept and noted in the
//! journal, and the answer is accepted. A missing reason counts as an ordinary end, because compatible
//! servers leave it out.

use backstitch_core::ports::{Finish, PolicyAnswer};

use crate::error::{ErrorKind, ProviderError};
use crate::provider::Provider;

/// The meaning of a finish reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FinishMeaning {
    /// The model ended its answer, with or without calls: [`Finish::Stop`] or [`Finish::Calls`].
    Whole,
    /// The token limit was reached: [`Finish::Length`].
    Length,
    /// The provider expects the caller to continue the answer: [`Finish::Pause`].
    Pause,
    /// The provider withheld the answer: an error of the kind [`ErrorKind::ContentFilter`].
    Withheld,
    /// The conversation and the answer do not fit into the model's context: an error of the kind
    /// [`ErrorKind::ContextTooLong`].
    ContextFull,
    /// The provider could not parse the output of the model, or the answer is not finished yet: an error of
    /// the kind [`ErrorKind::Malformed`].
    Malformed,
    /// A documented reason without a meaning for these requests: [`Finish::Other`].
    Other,
}

use FinishMeaning::{ContextFull, Length, Malformed, Other, Pause, Whole, Withheld};

/// The documented finish reasons of a provider, with their meanings.
pub(crate) type FinishReasons = &'static [(&'static str, FinishMeaning)];

/// Maps a finish reason to a [`Finish`]. Fails when the reason means that there is no usable answer. `why` is
/// the provider's explanation.
pub(crate) fn of_reason(
    provider: Provider,
    documented: FinishReasons,
    reason: Option<&str>,
    why: Option<&str>,
) -> Result<Finish, ProviderError> {
    let Some(word) = reason else { return Ok(Finish::Stop) };
    let refuse = |kind, text: &str| {
        let text = match why.filter(|why| !why.is_empty()) {
            Some(why) => format!("{text} ({word}): {why}"),
            None => format!("{text} ({word})"),
        };
        Err(ProviderError { code: Some(word.to_owned()), ..ProviderError::new(provider, kind, text) })
    };
    let known = documented.iter().find(|(known, _)| *known == word);
    match known.map_or(Other, |(_, meaning)| *meaning) {
        Withheld => refuse(ErrorKind::ContentFilter, "the answer was withheld"),
        ContextFull => refuse(ErrorKind::ContextTooLong, "the answer did not fit into the model's context"),
        Malformed => refuse(ErrorKind::Malformed, "the answer is not complete"),
        meaning => Ok(of_meaning(word, meaning)),
    }
}

/// Maps a word to a [`Finish`]. Scripted policies only use the words of providers, and never fail.
pub(crate) fn of_meaning(word: &str, meaning: FinishMeaning) -> Finish {
    match meaning {
        Whole => Finish::Stop,
        Length => Finish::Length,
        Pause => Finish::Pause,
        Withheld => Finish::Filter,
        ContextFull | Malformed | Other => Finish::Other(word.to_owned()),
    }
}

/// Sets the finish of an answer. [`Finish::Calls`] is derived from the answer, since providers and compatible
/// servers report the same reason with and without calls.
pub(crate) fn finished(mut answer: PolicyAnswer, finish: Finish) -> PolicyAnswer {
    answer.finish = match finish {
        Finish::Stop if !answer.calls.is_empty() => Finish::Calls,
        finish => finish,
    };
    answer
}
