//! Whole random journals.
//!
//! A sample journal is one that a runtime could have written: every call has a message, every result has a
//! call, sequences are dense on each branch, patches name positions that exist, batches are whole. It may end
//! anywhere, also with open calls or an unanswered request, like a session that was killed. Rewinds go to any
//! cut between two records, most of them to tool boundaries, and the journal continues from the state that is
//! visible there.

use backstitch_core::id::SessionId;
use backstitch_core::journal::{Batch, Position, Record};
use backstitch_core::object::Object;

use super::generator::Generator;

/// A journal, as the batches of its appends.
#[derive(Debug, Clone, PartialEq)]
pub struct Journal {
    /// The session of all records.
    pub session: SessionId,
    /// The batches, from first to last.
    pub batches: Vec<Batch>,
}

impl Journal {
    /// All records, with their positions.
    pub fn records(&self) -> Vec<Record> {
        let mut records = Vec::new();
        for batch in &self.batches {
            let start = Position::START.after(records.len());
            records.extend(batch.clone().into_records(start).0);
        }
        records
    }

    /// All objects of the batches, with repetitions.
    pub fn objects(&self) -> impl Iterator<Item = &Object> {
        self.batches.iter().flat_map(Batch::objects)
    }
}

/// Frequencies of the events in a journal: `n` means once in `n` times on average, and 0 means never.
#[derive(Debug, Clone, Copy, Default)]
pub struct Shape {
    /// The most calls in one answer.
    pub calls: u64,
    /// An answer without calls, after which an evaluation may end.
    pub plain_answers: u64,
    /// An evaluation that ends after a plain answer; the others continue with another user message.
    pub endings: u64,
    /// A call that fails.
    pub failures: u64,
    /// A call whose arguments do not parse.
    pub unparsable: u64,
    /// A request or a call that a crash interrupts and that starts again.
    pub crashes: u64,
    /// A call that waits for approval, or a session that is asked to pause.
    pub pauses: u64,
    /// An evaluation that is cancelled while calls are open.
    pub cancellations: u64,
    /// A rewind.
    pub rewinds: u64,
    /// A text or result that is too large for a record.
    pub large: u64,
    /// A note, or a turn of a program.
    pub asides: u64,
}

impl Shape {
    /// Every event occurs.
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
}

/// A journal of `turns` answers with the frequencies of [`Shape::RICH`]. The same seed gives the same
/// journal, and more turns with the same seed give a longer one with the same beginning.
pub fn journal(seed: u64, turns: usize) -> Journal {
    shaped(seed, turns, Shape::RICH)
}

/// A journal of `turns` answers in which nothing fails; each has a call that succeeds and changes a slice.
pub fn conversation(turns: usize) -> Journal {
    let mut generator = generate(0, turns, Shape { calls: 1, ..Shape::default() });
    // The last answer may have open calls.
    generator.finish_calls();
    generator.into_journal()
}

/// A journal of `turns` answers with these frequencies.
pub fn shaped(seed: u64, turns: usize, shape: Shape) -> Journal {
    generate(seed, turns, shape).into_journal()
}

fn generate(seed: u64, turns: usize, shape: Shape) -> Generator {
    let mut generator = Generator::new(seed, shape);
    while generator.answers < turns {
        generator.step();
    }
    generator
}
