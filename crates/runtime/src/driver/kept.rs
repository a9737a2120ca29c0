//! What is kept of answers that did not come to their end.
//!
//! Notes of the topic [`UNFINISHED`] hold it, one for each piece that was saved. No view reads them, so nothing of it is ever
//! sent to a model.

use std::sync::Arc;

use backstitch_core::budget::Amounts;
use backstitch_core::id::EvaluationId;
use backstitch_core::journal::{Note, Point, Record, RecordBody};
use backstitch_core::message::Large;
use backstitch_core::ports::{Store, StoreError, fetch_large};
use backstitch_core::view::JournalView;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::{Result, RuntimeError};
use crate::events::UNFINISHED;

/// How many records are read at a time.
const PAGE: usize = 64;

/// The number of bytes that count as one token, as in the estimates of requests.
const BYTES_OF_TOKEN: u64 = 4;

/// What arrived of an attempt to answer a request that did not come to its end. It is never sent to a model.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct KeptAttempt {
    /// The turn of the request.
    pub turn: u64,
    /// The number of the attempt.
    pub attempt: u32,
    /// Text of the answer.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// Visible reasoning.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reasoning: String,
    /// Calls, each on a line of its own: the name of the tool, and its arguments as far as they arrived.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub calls: String,
}

impl KeptAttempt {
    /// Whether nothing has arrived.
    pub fn is_empty(&self) -> bool {
        self.bytes() == 0
    }

    /// Returns the number of bytes that have arrived.
    fn bytes(&self) -> usize {
        self.text.len() + self.reasoning.len() + self.calls.len()
    }

    /// Returns a note that holds it, unless it is empty.
    pub(super) fn note(&self, evaluation: EvaluationId) -> Option<Note> {
        if self.is_empty() {
            return None;
        }
        let Self { turn, attempt, .. } = self;
        let words = format!("turn {turn}: {} bytes of attempt {attempt} are kept", self.bytes());
        let mut data = serde_json::to_value(self).unwrap_or_default();
        data["evaluation_id"] = evaluation.to_string().into();
        Some(Note::new(UNFINISHED, words).with_data(data))
    }

    /// Adds the next piece of the same attempt.
    fn join(&mut self, next: &Self) {
        self.text.push_str(&next.text);
        self.reasoning.push_str(&next.reasoning);
        self.calls.push_str(&next.calls);
    }

    /// Returns the estimated cost of what has arrived, without that of money: the request, and as much output as arrived. It
    /// never exceeds the largest possible cost of the request, where that is known. A request without any cost stays so.
    pub(super) fn cost(&self, largest: Amounts) -> Amounts {
        let arrived = (self.bytes() as u64).div_ceil(BYTES_OF_TOKEN);
        let output_tokens = match (largest.input_tokens, largest.output_tokens) {
            (0, 0) => 0,
            (_, 0) => arrived,
            (_, most) => arrived.min(most),
        };
        let reasoning_tokens = largest.reasoning_tokens.min(output_tokens);
        Amounts { output_tokens, reasoning_tokens, money_micros: 0, turns: 0, ..largest }
    }
}

/// Loads what is kept of the attempts of a request, by the place of its start. An attempt that came to its end may have saved
/// some of its text before; it is included.
pub async fn load_kept_attempts(store: &dyn Store, started: Point) -> Result<Vec<KeptAttempt>> {
    let mut attempts: Vec<KeptAttempt> = Vec::new();
    let mut next = started.position.next();
    loop {
        let page = store.read(started.session, next, PAGE).await?;
        let is_last = page.len() < PAGE;
        next = next.after(page.len());
        for record in page {
            let note = match record.body {
                RecordBody::Note(note) if note.topic == UNFINISHED => note,
                RecordBody::RequestStarted(_)
                | RecordBody::RequestFinished(_)
                | RecordBody::EvaluationFinished(_)
                | RecordBody::Rewound(_) => return Ok(attempts),
                _ => continue,
            };
            let Some(piece) = read_note(store, note).await? else { continue };
            match attempts.last_mut().filter(|last| last.attempt == piece.attempt) {
                Some(last) => last.join(&piece),
                None => attempts.push(piece),
            }
        }
        if is_last {
            return Ok(attempts);
        }
    }
}

/// Whether a record holds a piece of an answer that came to its end later, so that a message has its text. What is kept of an
/// attempt that failed comes before the record of the failure.
pub fn is_saved_piece(view: &JournalView, record: &Record) -> bool {
    if !matches!(&record.body, RecordBody::Note(note) if note.topic == UNFINISHED) {
        return false;
    }
    let mut requests = view.evaluations().flat_map(|evaluation| &evaluation.requests);
    requests.any(|request| {
        let Some(finished) = &request.finished else { return false };
        let begun = request.failures.last().map_or(request.started.point, |failed| failed.point);
        let places = begun.position..finished.point.position;
        begun.session == view.session_id() && places.contains(&record.position)
    })
}

/// Reads a note. What was redacted or is missing is left out.
async fn read_note(store: &dyn Store, mut note: Arc<Note>) -> Result<Option<KeptAttempt>> {
    match fetch_large(store, &mut note).await {
        Ok(()) => {}
        Err(StoreError::Redacted { .. } | StoreError::MissingObject { .. } | StoreError::Pruned { .. }) => {
            return Ok(None);
        }
        Err(error) => return Err(RuntimeError::Store(error)),
    }
    let Large::Inline(data) = &note.data else { return Ok(None) };
    Ok(serde_json::from_value(data.clone()).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cost_of_a_part_is_that_of_what_arrived() {
        let largest = Amounts { input_tokens: 100, output_tokens: 8_192, turns: 1, ..Amounts::ZERO };
        let part = KeptAttempt { text: "a seam".to_owned(), ..KeptAttempt::default() };
        let expected = Amounts { input_tokens: 100, output_tokens: 2, ..Amounts::ZERO };
        assert_eq!(part.cost(largest), expected);
        let long = KeptAttempt { reasoning: "a".repeat(100_000), ..KeptAttempt::default() };
        assert_eq!(long.cost(largest), Amounts { turns: 0, ..largest });
        let without_limit = Amounts { output_tokens: 0, ..largest };
        assert_eq!(part.cost(without_limit), expected);
        assert_eq!(part.cost(Amounts::ONE_TURN), Amounts::ZERO);
    }
}
