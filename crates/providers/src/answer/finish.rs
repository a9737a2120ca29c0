//! Why answers end: what the documented words of providers mean.
//!
//! The tables of the dialects hold every reason that the providers document (as of 2026-11-15, from the type definitions of their SDKs on npm:
//! `openai` 6.49.0, `@anthropic-ai/sdk` 1.8.0, `@google/genai` 2.32.0, and from their guides). `docs/providers.md`
//! shows them. A word that is in no table is kept and noted in the journal; the answer counts. A reason that is missing altogether counts as an ordinary end, because compatible servers
//! leave it out.

use backstitch_core::ports::{Finish, PolicyAnswer};

use crate::error::{ErrorKind, ProviderError};
use crate::provider::Provider;

/// What a finish reason means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FinishMeaning {
    /// The model has said all that it wanted to, and may have called something: [`Finish::Stop`] or [`Finish::Calls`].
    Whole,
    /// The token limit was reached: [`Finish::Length`].
    Length,
    /// The answer is to be continued: [`Finish::Pause`].
    Pause,
    /// It was withheld: an error of the kind [`ErrorKind::ContentFilter`].
    Withheld,
    /// The conversation and the answer do not fit into the model's context: an error of the kind
    /// [`ErrorKind::ContextTooLong`].
    ContextFull,
    /// The model made something that the provider could not read, or the answer is not there yet: an error of the kind
    /// [`ErrorKind::Malformed`].
    Malformed,
    /// It is documented, and means nothing for what was asked here: [`Finish::Other`].
    Other,
}

use FinishMeaning::{ContextFull, Length, Malformed, Other, Pause, Whole, Withheld};

/// The documented finish reasons of a provider, and what they mean.
pub(crate) type FinishReasons = &'static [(&'static str, FinishMeaning)];

/// What a reason means for an answer; an error when it is none. `why` is what the provider says about it.
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
        Whole => Ok(Finish::Stop),
        Length => Ok(Finish::Length),
        Pause => Ok(Finish::Pause),
        Other => Ok(Finish::Other(word.to_owned())),
        Withheld => refuse(ErrorKind::ContentFilter, "the answer was withheld"),
        ContextFull => refuse(ErrorKind::ContextTooLong, "the answer did not fit into the model's context"),
        Malformed => refuse(ErrorKind::Malformed, "the answer is not complete"),
    }
}

/// What a word means for a policy that only uses the words of providers.
pub(crate) fn of_meaning(word: &str, meaning: Option<FinishMeaning>) -> Finish {
    match meaning {
        Some(Whole) => Finish::Stop,
        Some(Length) => Finish::Length,
        Some(Pause) => Finish::Pause,
        Some(Withheld) => Finish::Filter,
        Some(ContextFull | Malformed | Other) | None => Finish::Other(word.to_owned()),
    }
}

/// The answer with the reason why it ended. Whether it calls something is seen in the answer, since providers and compatible
/// servers name the same reason for both.
pub(crate) fn finished(mut answer: PolicyAnswer, finish: Finish) -> PolicyAnswer {
    answer.finish = match finish {
        Finish::Stop if !answer.calls.is_empty() => Finish::Calls,
        finish => finish,
    };
    answer
}
