//! What an answer of the policy amounts to, by what it holds and by why it ended.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::journal::{Finish, InnerMessage, Role};
use crate::message::Part;

/// What an answer of the policy amounts to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TurnState {
    /// It calls something, so it is no final answer.
    Calls,
    /// It is a final answer.
    Whole,
    /// It ended of itself and says nothing.
    Empty,
    /// It reached its token limit. What it says is the beginning of an answer.
    CutOff,
    /// Its provider interrupted it, and continues it when it is asked again.
    Interrupted,
    /// It was withheld by a filter: what it says does not count.
    Withheld,
}

impl TurnState {
    /// Whether what it says, if anything, may be left out of requests: nothing is said, and nothing called.
    pub fn is_silent<'a>(messages: impl IntoIterator<Item = &'a Arc<InnerMessage>>) -> bool {
        messages.into_iter().all(|message| says_nothing(message))
    }

    /// What the messages of one answer amount to.
    pub fn of<'a>(messages: impl IntoIterator<Item = &'a Arc<InnerMessage>> + Clone) -> Self {
        let of_all = || messages.clone().into_iter();
        let finish = of_all().find_map(|message| message.provider.as_ref()?.finish.as_ref());
        match finish {
            Some(Finish::Filter) => Self::Withheld,
            _ if of_all().any(|message| message.message.option_call().is_some()) => Self::Calls,
            Some(Finish::Length) => Self::CutOff,
            Some(Finish::Pause) => Self::Interrupted,
            _ if of_all().all(|message| says_nothing(message)) => Self::Empty,
            _ => Self::Whole,
        }
    }
}

/// Whether a message holds neither words nor media.
fn says_nothing(message: &InnerMessage) -> bool {
    message.message.parts().is_some_and(|parts| {
        parts.iter().all(|part| match part {
            Part::Text(text) => text.text.inline().is_some_and(|text| text.trim().is_empty()),
            Part::Media(_) => false,
        })
    })
}

/// The answers among the messages of an evaluation, by their turn.
pub fn answers_of(messages: &[Arc<InnerMessage>]) -> BTreeMap<u64, Vec<&Arc<InnerMessage>>> {
    let mut answers: BTreeMap<u64, Vec<&Arc<InnerMessage>>> = BTreeMap::new();
    for message in messages.iter().filter(|message| message.role() == Role::Assistant) {
        answers.entry(message.turn).or_default().push(message);
    }
    answers
}

/// The text of an evaluation's final answer: of its last answer alone, together with the answers directly before it that it
/// continues because they were cut off or interrupted. What was said in any earlier turn is no part of it.
pub fn final_text(messages: &[Arc<InnerMessage>]) -> String {
    let is_by_a_person =
        |message: &&Arc<InnerMessage>| message.role() == Role::User && !message.message.policy.is_reserved();
    let mut pieces = Vec::new();
    for (turn, answer) in answers_of(messages).iter().rev() {
        let is_continued =
            matches!(TurnState::of(answer.iter().copied()), TurnState::CutOff | TurnState::Interrupted)
                && !messages.iter().filter(is_by_a_person).any(|message| message.turn == *turn);
        if !pieces.is_empty() && !is_continued {
            break;
        }
        pieces.push(text_of(answer));
    }
    pieces.reverse();
    pieces.concat()
}

fn text_of(answer: &[&Arc<InnerMessage>]) -> String {
    let texts =
        answer.iter().filter(|message| message.message.parts().is_some()).map(|message| message.content());
    texts.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n")
}
