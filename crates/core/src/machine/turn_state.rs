//! Classification of an answer by its content and the reason for its end.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::journal::{Finish, InnerMessage, Role};
use crate::message::{MediaPart, Part};

/// Classification of an answer of the policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TurnState {
    /// The answer has calls, so it is not final.
    Calls,
    /// The answer is final.
    Whole,
    /// The answer ended normally and has no content.
    Empty,
    /// The answer reached its token limit. Its text is the beginning of an answer.
    CutOff,
    /// The provider or a person interrupted the answer. The next request continues it.
    Interrupted,
    /// A filter withheld the answer. Its text does not count.
    Withheld,
}

impl TurnState {
    /// Returns whether requests may omit the answer, because it has neither content nor calls.
    pub fn is_silent<'a>(messages: impl IntoIterator<Item = &'a Arc<InnerMessage>>) -> bool {
        messages.into_iter().all(|message| says_nothing(message))
    }

    /// Classifies the messages of one answer.
    pub fn of<'a>(messages: impl IntoIterator<Item = &'a Arc<InnerMessage>> + Clone) -> Self {
        let of_all = || messages.clone().into_iter();
        let finish = of_all().find_map(|message| message.provider.as_ref()?.finish.as_ref());
        match finish {
            Some(Finish::Filter) => Self::Withheld,
            _ if of_all().any(|message| message.message.option_call().is_some()) => Self::Calls,
            Some(Finish::Length) => Self::CutOff,
            Some(Finish::Pause | Finish::Interrupted) => Self::Interrupted,
            _ if of_all().all(|message| says_nothing(message)) => Self::Empty,
            _ => Self::Whole,
        }
    }
}

/// Returns whether a message holds neither text nor media.
fn says_nothing(message: &InnerMessage) -> bool {
    message.message.parts().is_some_and(|parts| {
        parts.iter().all(|part| match part {
            Part::Text(text) => text.text.inline().is_some_and(|text| text.trim().is_empty()),
            Part::Media(_) => false,
        })
    })
}

/// Groups the answers of an evaluation by turn.
pub fn answers_of(messages: &[Arc<InnerMessage>]) -> BTreeMap<u64, Vec<&Arc<InnerMessage>>> {
    let mut answers: BTreeMap<u64, Vec<&Arc<InnerMessage>>> = BTreeMap::new();
    for message in messages.iter().filter(|message| message.role() == Role::Assistant) {
        answers.entry(message.turn).or_default().push(message);
    }
    answers
}

/// Returns the text of an evaluation's final answer: its last answer, together with the directly preceding
/// answers that it continues because they were cut off or interrupted. Text of earlier turns is not included.
/// An answer of media alone is described in words.
pub fn final_text(messages: &[Arc<InnerMessage>]) -> String {
    let answers = final_answers(messages);
    let text: String = answers.iter().map(|answer| text_of(answer)).collect();
    if text.trim().is_empty() {
        let media: Vec<_> = media_of(&answers).map(MediaPart::in_words).collect();
        if !media.is_empty() {
            return media.join("\n");
        }
    }
    text
}

/// Returns the media of an evaluation's final answer, in order.
pub fn final_media(messages: &[Arc<InnerMessage>]) -> Vec<MediaPart> {
    media_of(&final_answers(messages)).cloned().collect()
}

/// The messages of one answer.
type Answer<'a> = Vec<&'a Arc<InnerMessage>>;

/// Returns the answers that make up the final answer of an evaluation, in order.
fn final_answers(messages: &[Arc<InnerMessage>]) -> Vec<Answer<'_>> {
    let is_by_a_person =
        |message: &&Arc<InnerMessage>| message.role() == Role::User && !message.message.policy.is_reserved();
    let mut pieces = Vec::new();
    for (turn, answer) in answers_of(messages).into_iter().rev() {
        let is_continued =
            matches!(TurnState::of(answer.iter().copied()), TurnState::CutOff | TurnState::Interrupted)
                && !messages.iter().filter(is_by_a_person).any(|message| message.turn == turn);
        if !pieces.is_empty() && !is_continued {
            break;
        }
        pieces.push(answer);
    }
    pieces.reverse();
    pieces
}

fn text_of(answer: &[&Arc<InnerMessage>]) -> String {
    let texts =
        answer.iter().filter(|message| message.message.parts().is_some()).map(|message| message.content());
    texts.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n")
}

fn media_of<'a>(answers: &'a [Answer<'a>]) -> impl Iterator<Item = &'a MediaPart> {
    let messages = answers.iter().flatten();
    messages.flat_map(|message| message.message.parts().unwrap_or_default()).filter_map(Part::as_media)
}
