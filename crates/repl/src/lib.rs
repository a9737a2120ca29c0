//! The Lisp agent of Backstitch. No IO.
//!
//! A Lisp agent answers with programs. What came of each program is a [`Turn`], an immutable record that the journal keeps
//! for ever; what a model is shown of the turns before is made anew for each request, by a strategy that is a pure function
//! of them.
//!
//! A [`LispAgent`] says what it is given and what its answer looks like ([`Signature`]); [`LispMachinery`] makes of it the
//! machine that a runtime drives: it finds the program in an answer ([`extract`]), runs it, and says which calls it waits
//! for. A program that was interrupted runs again with what the journal holds of its calls.

mod agent;
pub mod compression;
mod extract;
mod machine;
mod mission;
mod prompt;
pub mod recall;
mod signature;
mod steps;
pub mod transcript;
mod turn;

pub use agent::{AgentError, LispAgent, LispOptions, MAX_DEPTH, MAX_TURNS, TURN_BUDGET, check_data_name};
pub use extract::{NoProgram, extract};
pub use machine::{LispMachine, LispMachinery};
pub use mission::{MissionError, fill_mission, placeholders, without_firewalled};
pub use signature::{Field, InvalidSignature, Mismatch, Signature, Type, is_firewalled, mismatches};
pub use turn::{
    DefinedAs, Excerpt, MemoryChange, MemoryExtent, StoredMemory, Turn, TurnCall, TurnCallOutcome,
    TurnDefinition, TurnError, TurnSignal,
};
