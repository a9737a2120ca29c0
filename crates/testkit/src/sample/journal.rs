//! Whole journals, made by chance.
//!
//! A sample journal is one that a runtime could have written: every call has a message, every result has a call, sequences
//! are dense on each branch, patches name positions that exist, batches are whole. It may stop anywhere, also with calls
//! open or a question unanswered, as a session does that was killed. Rewinds go to any cut between two records, most of
//! them to tool boundaries, and what follows goes on from what is visible there.

use backstitch_core::id::SessionId;
use backstitch_core::journal::{Batch, Position, Record};
use backstitch_core::object::Object;

use super::generator::Generator;

/// A journal, as the batches that it is appended in.
#[derive(Debug, Clone, PartialEq)]
pub struct Journal {
    /// The session.
    pub session: SessionId,
    /// The batches, from first to last.
    pub batches: Vec<Batch>,
}

impl Journal {
    /// All records, each at its place.
    pub fn records(&self) -> Vec<Record> {
        let mut records = Vec::new();
        for batch in &self.batches {
            let start = Position::START.after(records.len());
            records.extend(batch.clone().into_records(start).0);
        }
        records
    }

    /// All objects that the batches bring along, those that come several times too.
    pub fn objects(&self) -> impl Iterator<Item = &Object> {
        self.batches.iter().flat_map(Batch::objects)
    }
}

/// What happens in a journal, and how often: a chance of `n` means once in `n` times, and 0 means never.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// The most calls in one answer.
    pub calls: u64,
    /// An answer without calls, after which an evaluation may end.
    pub plain_answers: u64,
    /// An evaluation that ends after a plain answer; the others go on with another user message.
    pub endings: u64,
    /// A call that fails.
    pub failures: u64,
    /// A call whose arguments do not parse.
    pub unparsable: u64,
    /// A request or a call that is cut off by a crash and starts anew.
    pub crashes: u64,
    /// A call that waits for approval, or a session that is asked to pause.
    pub pauses: u64,
    /// An evaluation that is cancelled while calls are open.
    pub cancellations: u64,
    /// A step back.
    pub rewinds: u64,
    /// A text or result that is too large for a record.
    pub large: u64,
    /// A note, or a turn of a program.
    pub asides: u64,
}

impl Shape {
    /// Everything happens.
    pub const RICH: Self = Self {
        calls: 4,
        plain_answers: 4,
        endings: 2,
        failures: 5,
        unparsable: 12,
        crashes: 10,
        pauses: 10,
        cancellations: 40,
        rewinds: 25,
        large: 60,
        asides: 8,
    };

    /// Nothing goes wrong: each answer has one call, each call succeeds, and one evaluation goes on and on.
    pub const CALM: Self = Self {
        calls: 1,
        plain_answers: 0,
        endings: 0,
        failures: 0,
        unparsable: 0,
        crashes: 0,
        pauses: 0,
        cancellations: 0,
        rewinds: 0,
        large: 0,
        asides: 0,
    };
}

/// A journal of so many answers in which everything may happen. The same seed gives the same journal, and more turns of the
/// same seed give a longer one with the same beginning.
pub fn journal(seed: u64, turns: usize) -> Journal {
    shaped(seed, turns, Shape::RICH)
}

/// A journal of so many answers in which nothing goes wrong; each has a call that succeeds and changes a slice.
pub fn conversation(turns: usize) -> Journal {
    shaped(0, turns, Shape::CALM)
}

/// A journal of so many answers with these chances.
pub fn shaped(seed: u64, turns: usize, shape: Shape) -> Journal {
    let mut generator = Generator::new(seed, shape);
    while generator.answers() < turns {
        generator.step();
    }
    // A step that was cut off in between may be finished or not; a calm session always finishes what it began.
    if shape == Shape::CALM {
        generator.finish_calls();
    }
    generator.into_journal()
}
