//! Reason for the end of an answer, with one meaning for all providers.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Reason for the end of an answer.
///
/// Policies set it on each [`Answer`](crate::ports::PolicyAnswer), and the driver records it with the answer,
/// on the [`ProviderSidecar`](super::ProviderSidecar) of the turn's first message. Only [`Finish::Stop`] and
/// [`Finish::Calls`] are whole answers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finish {
    /// The policy ended its answer and made no calls: a final answer. Also the value for policies that report
    /// no reason.
    #[default]
    Stop,
    /// The policy made calls and waits for the results. The answer has at least one call.
    Calls,
    /// The answer reached its token limit. Its text is the beginning of an answer and never counts as a final
    /// one. There may be no text at all, if reasoning used up the limit. Calls whose arguments were
    /// incomplete have [`cut_off`](crate::message::OptionCall::cut_off) set and must not run; the other calls
    /// of the answer are complete.
    Length,
    /// The provider or the model withheld the answer or its end (a content filter, a refusal). Its text does
    /// not count, and a retry has the same result. `ModelPolicy` reports it as a
    /// [`PolicyError`](crate::ports::PolicyError) of the kind `content_filter` instead. An answer has this
    /// value only if the policy returns the text before it was withheld, as scripted ones do.
    Filter,
    /// The provider interrupted a long answer and expects another request with the answer so far
    /// (`pause_turn`). This is neither a failure nor a final answer: the next request follows at once,
    /// without another message. Rendering adds what the provider needs in order to continue.
    Pause,
    /// A person stopped the answer. Its text is as far as it came and never counts as a final answer. Requests show it
    /// with a mark at its end.
    Interrupted,
    /// Another reason, in the provider's own word, of unknown meaning. It counts as [`Finish::Stop`] or
    /// [`Finish::Calls`], and a note in the journal names it.
    Other(String),
}

impl Finish {
    /// Returns whether the answer is whole: nothing was cut off, withheld or interrupted, as far as is known.
    pub fn is_whole(&self) -> bool {
        matches!(self, Self::Stop | Self::Calls | Self::Other(_))
    }

    /// Returns a stable word for the reason; for another reason, the provider's own.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Stop => "stop",
            Self::Calls => "calls",
            Self::Length => "length",
            Self::Filter => "filter",
            Self::Pause => "pause",
            Self::Interrupted => "interrupted",
            Self::Other(word) => word,
        }
    }
}

impl fmt::Display for Finish {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_stored_as_a_word_and_others_keep_theirs() {
        let all = [
            (Finish::Stop, r#""stop""#),
            (Finish::Calls, r#""calls""#),
            (Finish::Length, r#""length""#),
            (Finish::Filter, r#""filter""#),
            (Finish::Pause, r#""pause""#),
            (Finish::Interrupted, r#""interrupted""#),
            (Finish::Other("stop".into()), r#"{"other":"stop"}"#),
        ];
        for (finish, json) in all {
            assert_eq!(serde_json::to_string(&finish).unwrap(), json);
            assert_eq!(serde_json::from_str::<Finish>(json).unwrap(), finish);
        }
    }
}
