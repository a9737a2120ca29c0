//! Why an answer ended, with one meaning for all providers.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Why an answer ended.
///
/// Policies set it on each [`Answer`](crate::ports::PolicyAnswer), and the driver records it with the answer, on the
/// [`ProviderSidecar`](super::ProviderSidecar) of the turn's first message. Only [`Finish::Stop`] and [`Finish::Calls`] are
/// whole answers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finish {
    /// The policy said all that it wanted to say, and called nothing. A final answer. Also the value for policies that give no
    /// reason.
    #[default]
    Stop,
    /// The policy called something and waits for the results. The answer has at least one call.
    Calls,
    /// The answer reached its token limit. What was said is the beginning of an answer and never counts as a final one. There
    /// may be no text at all, if thinking used up the limit. Calls whose arguments were incomplete have
    /// [`cut_off`](crate::message::OptionCall::cut_off) set and must not run; the other calls of the answer are complete.
    Length,
    /// The provider or the model withheld the answer or its end (a content filter, a refusal). What was said does not count.
    /// Asking the same again gives the same. `ModelPolicy` reports it as a
    /// [`PolicyError`](crate::ports::PolicyError) of the kind `content_filter` instead, so that an answer has it only when the
    /// policy hands over what was said before it was withheld, as scripted ones do.
    Filter,
    /// The provider interrupted a long answer and expects to be asked again with what was said so far (`pause_turn`). Neither a
    /// failure nor a final answer: ask again at once, without adding a message. Rendering adds what the provider needs in order to
    /// continue.
    Pause,
    /// Another reason, in the provider's own word, whose meaning is not known here. It counts as [`Finish::Stop`] or
    /// [`Finish::Calls`], and a note in the journal names it.
    Other(String),
}

impl Finish {
    /// Whether the answer is whole: nothing was cut off, withheld or interrupted, as far as is known.
    pub fn is_whole(&self) -> bool {
        matches!(self, Self::Stop | Self::Calls | Self::Other(_))
    }

    /// A stable word for it; of another reason, the provider's own.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Stop => "stop",
            Self::Calls => "calls",
            Self::Length => "length",
            Self::Filter => "filter",
            Self::Pause => "pause",
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
            (Finish::Other("stop".into()), r#"{"other":"stop"}"#),
        ];
        for (finish, json) in all {
            assert_eq!(serde_json::to_string(&finish).unwrap(), json);
            assert_eq!(serde_json::from_str::<Finish>(json).unwrap(), finish);
        }
    }
}
