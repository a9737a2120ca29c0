//! The Lisp agent of Backstitch. No IO.
//!
//! A Lisp agent answers with programs. What came of each program is a [`Turn`], an immutable record that the journal keeps
//! for ever; what a model is shown of the turns before is made anew for each request, by a strategy that is a pure function
//! of them.

mod turn;

pub use turn::{
    CallOutcome, Defined, DefinedAs, Excerpt, Extent, MemoryChange, StoredMemory, Turn, TurnCall, TurnError,
    TurnSignal,
};
