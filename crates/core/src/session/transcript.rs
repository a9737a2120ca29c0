//! The transcript slice. A message belongs at the end of its evaluation.
//!
//! `sequence` is dense in each evaluation, so a message either goes on where its evaluation ended, stands there already, or
//! does not fit. Recording is idempotent: the same message at a place that is taken changes nothing, another one is an error.

use std::sync::Arc;

use super::items::Items;
use super::op::SliceOp;
use super::reducer::{ReducerContext, ReducerResult};
use super::slice::{Slice, SlicePolicy};
use crate::id::EvaluationId;
use crate::payload::InnerMessage;

impl Slice for InnerMessage {
    const NAME: &'static str = "inner_message";
    const POLICY: SlicePolicy = SlicePolicy::Journal;
}

/// A message does not fit at the end of its conversation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SequenceError {
    /// A message was recorded before at this place, and it was another one.
    #[error("evaluation {evaluation} already has another message at sequence {sequence}")]
    Differs {
        /// The evaluation.
        evaluation: EvaluationId,
        /// The place.
        sequence: u64,
    },
    /// Messages are missing before this one.
    #[error("evaluation {evaluation} goes on at sequence {expected}, not at {found}")]
    Gap {
        /// The evaluation.
        evaluation: EvaluationId,
        /// The place that is next.
        expected: u64,
        /// The place of the message.
        found: u64,
    },
    /// No conversation has that many turns, so the number is wrong.
    #[error("a message of evaluation {evaluation} is in turn {turn}; turns are numbered up to {MAX_TURN}")]
    Turn {
        /// The evaluation.
        evaluation: EvaluationId,
        /// The turn of the message.
        turn: u64,
    },
}

/// The largest number of a turn. A larger one in a journal, a snapshot or a conversation is an error of whoever wrote it.
pub const MAX_TURN: u64 = 1 << 32;

/// The reducer of the transcript: adds a message where it belongs, at the end.
///
/// A message that is already there changes nothing, while another one at its place, or a gap before it, is an error. It is
/// registered in every session that a journal is folded to.
pub fn inner_message_append(
    transcript: &Items<InnerMessage>,
    message: &Arc<InnerMessage>,
    _: &ReducerContext<'_>,
) -> ReducerResult<InnerMessage> {
    let last = last_of(transcript, message.evaluation_id);
    let length = last.and_then(|last| transcript.get(last)).map_or(0, |last| last.sequence.saturating_add(1));
    let there = || transcript.iter().find(|other| stands_at(other, message)).cloned();
    Ok(match place_after(length, message, there)? {
        MessageSlot::Next => SliceOp::Append(message.clone()),
        MessageSlot::Taken => SliceOp::keep(),
    })
}

/// Where a message belongs.
pub(crate) enum MessageSlot {
    /// At the end.
    Next,
    /// Where it already stands.
    Taken,
}

/// Where a message belongs in an evaluation that has `length` messages; `there` finds the one at its place.
pub(crate) fn place_after(
    length: u64,
    message: &InnerMessage,
    there: impl FnOnce() -> Option<Arc<InnerMessage>>,
) -> Result<MessageSlot, SequenceError> {
    let (evaluation, sequence) = (message.evaluation_id, message.sequence);
    if message.turn > MAX_TURN {
        return Err(SequenceError::Turn { evaluation, turn: message.turn });
    }
    if sequence == length {
        return Ok(MessageSlot::Next);
    }
    if sequence > length {
        return Err(SequenceError::Gap { evaluation, expected: length, found: sequence });
    }
    match there() {
        Some(there) if there.says_the_same(message) => Ok(MessageSlot::Taken),
        _ => Err(SequenceError::Differs { evaluation, sequence }),
    }
}

/// Whether `other` stands where `message` says that it belongs.
pub(crate) fn stands_at(other: &InnerMessage, message: &InnerMessage) -> bool {
    other.sequence == message.sequence && other.evaluation_id == message.evaluation_id
}

/// The position of the last message of an evaluation.
///
/// It looks from the end and leaps over evaluations whose messages stand together: when the first message of an evaluation
/// stands as far back as its last one's sequence says, there is no room for anyone else between them. So a new evaluation
/// costs a step per evaluation before it, and not one per message.
fn last_of(transcript: &Items<InnerMessage>, evaluation: EvaluationId) -> Option<usize> {
    let mut end = transcript.len();
    while let Some(index) = end.checked_sub(1) {
        let message = transcript.get(index)?;
        if message.evaluation_id == evaluation {
            return Some(index);
        }
        let first = usize::try_from(message.sequence).ok().and_then(|sequence| index.checked_sub(sequence));
        let leap = first.filter(|first| {
            let first = transcript.get(*first);
            first.is_some_and(|first| first.sequence == 0 && first.evaluation_id == message.evaluation_id)
        });
        end = leap.unwrap_or(index);
    }
    None
}
