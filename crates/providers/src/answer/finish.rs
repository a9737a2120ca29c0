//! Why answers end: the documented words of each provider, and what they mean.
//!
//! The tables hold every reason that the providers document (as of 2026-11-15, from the type definitions of their SDKs on npm:
//! `openai` 6.49.0, `@anthropic-ai/sdk` 1.8.0, `@google/genai` 2.32.0, and from their guides). `docs/providers.md` shows them. A word that is in no table is kept and noted in
//! the journal; the answer counts. A reason that is missing altogether counts as an ordinary end, because compatible servers
//! leave it out.

use backstitch_core::ports::{Answer, Finish};

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

/// `finish_reason` of Chat Completions. The last three are of servers that are compatible with it: Mistral has the first two, DeepSeek
/// the third.
const OPENAI_CHAT: &[(&str, FinishMeaning)] = &[
    ("stop", Whole),
    ("tool_calls", Whole),
    ("function_call", Whole),
    ("length", Length),
    ("content_filter", Withheld),
    ("model_length", Length),
    ("error", Malformed),
    ("insufficient_system_resource", Malformed),
];

/// `incomplete_details.reason` of Responses, or `status` where there is none.
const OPENAI_RESPONSES: &[(&str, FinishMeaning)] = &[
    ("completed", Whole),
    ("max_output_tokens", Length),
    ("content_filter", Withheld),
    ("max_messages", Other),
    ("steered", Other),
    ("incomplete", Other),
    ("cancelled", Malformed),
    ("in_progress", Malformed),
    ("queued", Malformed),
    ("failed", Malformed),
];

/// `stop_reason` of Messages.
const ANTHROPIC: &[(&str, FinishMeaning)] = &[
    ("end_turn", Whole),
    ("stop_sequence", Whole),
    ("tool_use", Whole),
    ("max_tokens", Length),
    ("pause_turn", Pause),
    ("refusal", Withheld),
    ("model_context_window_exceeded", ContextFull),
];

/// `finishReason` of Gemini.
const GEMINI: &[(&str, FinishMeaning)] = &[
    ("STOP", Whole),
    ("MAX_TOKENS", Length),
    ("CONTINUATION", Pause),
    ("SAFETY", Withheld),
    ("RECITATION", Withheld),
    ("LANGUAGE", Withheld),
    ("BLOCKLIST", Withheld),
    ("PROHIBITED_CONTENT", Withheld),
    ("SPII", Withheld),
    ("IMAGE_SAFETY", Withheld),
    ("IMAGE_PROHIBITED_CONTENT", Withheld),
    ("IMAGE_RECITATION", Withheld),
    ("IMAGE_OTHER", Malformed),
    ("NO_IMAGE", Malformed),
    ("MALFORMED_FUNCTION_CALL", Malformed),
    ("MALFORMED_RESPONSE", Malformed),
    ("UNEXPECTED_TOOL_CALL", Malformed),
    ("TOO_MANY_TOOL_CALLS", Malformed),
    ("OTHER", Malformed),
    ("FINISH_REASON_UNSPECIFIED", Other),
];

/// The documented finish reasons of a provider.
pub fn finish_reasons(provider: Provider) -> &'static [(&'static str, FinishMeaning)] {
    match provider {
        Provider::OpenAiChat => OPENAI_CHAT,
        Provider::OpenAiResponses => OPENAI_RESPONSES,
        Provider::Anthropic => ANTHROPIC,
        Provider::Gemini => GEMINI,
    }
}

fn meaning(provider: Provider, word: &str) -> FinishMeaning {
    let known = finish_reasons(provider).iter().find(|(known, _)| *known == word);
    known.map_or(Other, |(_, meaning)| *meaning)
}

/// What a reason means for an answer; an error when it is none. `why` is what the provider says about it.
pub(crate) fn of_reason(
    provider: Provider,
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
    match meaning(provider, word) {
        Whole => Ok(Finish::Stop),
        Length => Ok(Finish::Length),
        Pause => Ok(Finish::Pause),
        Other => Ok(Finish::Other(word.to_owned())),
        Withheld => refuse(ErrorKind::ContentFilter, "the answer was withheld"),
        ContextFull => refuse(ErrorKind::ContextTooLong, "the answer did not fit into the model's context"),
        Malformed => refuse(ErrorKind::Malformed, "the answer is not complete"),
    }
}

/// What a word of any provider means, for policies that only use the words.
pub(crate) fn of_any(word: &str) -> Finish {
    let known = Provider::ALL.into_iter().flat_map(finish_reasons).find(|(known, _)| *known == word);
    match known.map(|(_, meaning)| meaning) {
        Some(Whole) => Finish::Stop,
        Some(Length) => Finish::Length,
        Some(Pause) => Finish::Pause,
        Some(Withheld) => Finish::Filter,
        Some(ContextFull | Malformed | Other) | None => Finish::Other(word.to_owned()),
    }
}

/// The answer with the reason why it ended. Whether it calls something is seen in the answer, since providers and compatible
/// servers name the same reason for both.
pub(crate) fn finished(mut answer: Answer, finish: Finish) -> Answer {
    answer.finish = match finish {
        Finish::Stop if !answer.calls.is_empty() => Finish::Calls,
        finish => finish,
    };
    answer
}
