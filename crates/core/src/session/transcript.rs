//! The transcript slice. A message is appended at the end of its evaluation.
//!
//! `sequence` is dense in each evaluation, so a message either continues its evaluation, is already present,
//! or does not fit. Recording is idempotent: the same message at an occupied place changes nothing, another
//! one is an error.

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
    /// Another message was recorded at this place.
    #[error("evaluation {evaluation} already has another message at sequence {sequence}")]
    Differs {
        /// The evaluation.
        evaluation: EvaluationId,
        /// Sequence number of both messages.
        sequence: u64,
    },
    /// Messages are missing before this one.
    #[error("evaluation {evaluation} continues at sequence {expected}, not at {found}")]
    Gap {
        /// The evaluation.
        evaluation: EvaluationId,
        /// Next sequence number of the evaluation.
        expected: u64,
        /// Sequence number of the message.
        found: u64,
    },
    /// The turn number is larger than any conversation can reach.
    #[error("a message of evaluation {evaluation} is in turn {turn}; turns are numbered up to {MAX_TURN}")]
    Turn {
        /// The evaluation.
        evaluation: EvaluationId,
        /// The turn of the message.
        turn: u64,
    },
}

/// The largest number of a turn. A larger one in a journal, a snapshot or a conversation is an error of its
/// writer.
pub const MAX_TURN: u64 = 1 << 32;

/// The reducer of the transcript: appends a message at the end of its evaluation.
///
/// A message that is already present changes nothing. Another message at its place, or a gap before it, is an
/// error. The reducer is registered in every session that is folded from a journal.
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

/// The place of a message in its evaluation.
pub(crate) enum MessageSlot {
    /// The message is the next one.
    Next,
    /// The message is already present.
    Taken,
}

/// Determines the place of a message in an evaluation of `length` messages. `there` finds the message at its
/// place.
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

/// Returns whether `other` is at the place of `message`.
pub(crate) fn stands_at(other: &InnerMessage, message: &InnerMessage) -> bool {
    other.sequence == message.sequence && other.evaluation_id == message.evaluation_id
}

/// Finds the position of the last message of an evaluation.
///
/// It searches from the end and skips evaluations whose messages are contiguous: if the first message of an
/// evaluation is as far back as the sequence of the last one says, no other message lies between them. A new
/// evaluation therefore costs a step per earlier evaluation, not per message.
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
