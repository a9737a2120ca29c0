//! Recall of content that a request left out.
//!
//! A strategy leaves content out and the journal keeps it, so a tool can return it. This is its pure part:
//! given the turns of a Lisp agent or the transcript of any agent, and the number of a turn or the id of a
//! call, it returns a window of the full text; without either, a line for each turn. Windows are measured in
//! characters and contain the start of the next one.

mod text;

use std::collections::HashSet;
use std::sync::Arc;

use backstitch_core::id::CallId;
use backstitch_core::journal::InnerMessage;
use backstitch_core::machine::TurnNumbers;
use serde::{Deserialize, Serialize};

use crate::compression::History;
use crate::turn::Turn;

/// The name of the tool, which placeholders mention.
pub const TOOL_NAME: &str = "recall";

/// The content to recall.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reference {
    /// All turns, one line each.
    Overview,
    /// A turn, by its number.
    Turn(u64),
    /// A call of a tool, with its arguments and its result.
    CallId(CallId),
}

/// A part of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Window {
    /// The first character, from 0.
    pub from: usize,
    /// The maximum number of characters.
    pub limit: usize,
}

impl Default for Window {
    fn default() -> Self {
        Self { from: 0, limit: 8_000 }
    }
}

/// A window of a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RecallExcerpt {
    /// The text of the window.
    pub text: String,
    /// The offset of the window in characters.
    pub from: usize,
    /// The number of characters of the whole text.
    pub total: usize,
    /// The offset of the next window, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<usize>,
}

/// There is no such content.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecallError {
    /// There is no such turn.
    #[error("there is no turn {turn}; {}", known(*first, *last))]
    NoTurn {
        /// The requested turn.
        turn: u64,
        /// The first existing turn.
        first: Option<u64>,
        /// The last existing turn.
        last: Option<u64>,
    },
    /// There is no such call.
    #[error(
        "there is no call {call} in this conversation; take the id from a placeholder or from the list of calls"
    )]
    NoCall {
        /// The requested call.
        call: CallId,
    },
}

fn known(first: Option<u64>, last: Option<u64>) -> String {
    match (first, last) {
        (Some(first), Some(last)) => format!("there are turns {first} to {last}"),
        _ => "there are no turns yet".to_owned(),
    }
}

/// Recalls a turn of a Lisp agent, or a call that one of its programs made.
///
/// Turns keep samples of large values. The complete result of a call is in its message: recall it from the
/// transcript.
pub fn from_turns(
    history: &History,
    reference: Reference,
    window: Window,
) -> Result<RecallExcerpt, RecallError> {
    match reference {
        Reference::Overview => Ok(cut(&lines(history.turns().map(|turn| text::line_of_turn(turn))), window)),
        Reference::Turn(turn) => {
            let found = history.turns().find(|candidate| candidate.number == turn);
            let number = |turn: Option<&Arc<Turn>>| turn.map(|turn| turn.number);
            let (first, last) = (number(history.turns().next()), number(history.turns().next_back()));
            let found = found.ok_or(RecallError::NoTurn { turn, first, last })?;
            Ok(cut(&text::of_turn(found), window))
        }
        Reference::CallId(call) => {
            let mut calls = history.turns().rev().flat_map(|turn| &turn.tool_calls);
            let found = calls.find(|candidate| candidate.call_id == call);
            found.map(|call| cut(&text::of_call(call), window)).ok_or(RecallError::NoCall { call })
        }
    }
}

/// Recalls an answer with its calls and results, or one call. Stored objects have to be hydrated before.
/// Calls by programs are shown without firewalled fields. If the transcript begins with earlier evaluations,
/// turns are numbered consecutively across them.
pub fn from_transcript(
    messages: &[Arc<InnerMessage>],
    reference: Reference,
    window: Window,
) -> Result<RecallExcerpt, RecallError> {
    let by_programs = called_by_programs(messages);
    let mut numbers = TurnNumbers::default();
    let numbered: Vec<(u64, &Arc<InnerMessage>)> =
        messages.iter().map(|message| (numbers.number(message), message)).collect();
    let written = |belongs: &dyn Fn(u64, &InnerMessage) -> bool, nothing: RecallError| {
        let found = numbered.iter().filter(|(number, message)| belongs(*number, message));
        match found.map(|(_, message)| text::of_message(message, &by_programs)).collect::<Vec<_>>() {
            texts if texts.is_empty() => Err(nothing),
            texts => Ok(cut(&texts.join("\n\n"), window)),
        }
    };
    match reference {
        Reference::Overview => {
            let turns = numbered.chunk_by(|(one, _), (other, _)| one == other);
            Ok(cut(&lines(turns.map(text::line_of_answer)), window))
        }
        Reference::Turn(turn) => {
            let turns = || numbered.iter().map(|(number, _)| *number);
            let nothing = RecallError::NoTurn { turn, first: turns().min(), last: turns().max() };
            written(&|number, _| number == turn, nothing)
        }
        Reference::CallId(call) => {
            let belongs = |_, message: &InnerMessage| {
                message.tool_call_id() == Some(call)
                    || message.message.option_call().is_some_and(|made| made.invocation_id == call)
            };
            written(&belongs, RecallError::NoCall { call })
        }
    }
}

/// The calls that were made by programs, and not by answers.
fn called_by_programs(messages: &[Arc<InnerMessage>]) -> HashSet<CallId> {
    let calls = messages.iter().filter_map(|message| message.message.option_call());
    calls.filter(|call| call.path.is_some()).map(|call| call.invocation_id).collect()
}

fn lines(lines: impl Iterator<Item = String>) -> String {
    lines.collect::<Vec<_>>().join("\n")
}

fn cut(text: &str, window: Window) -> RecallExcerpt {
    let total = text.chars().count();
    let from = window.from.min(total);
    let shown: String = text.chars().skip(from).take(window.limit).collect();
    let end = from + shown.chars().count();
    // After an empty window, the next one would be the same forever.
    let next = (end < total && end > from).then_some(end);
    RecallExcerpt { text: shown, from, total, next }
}
