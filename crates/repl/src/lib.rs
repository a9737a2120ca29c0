//! The Lisp agent of Backstitch. No IO.
//!
//! A Lisp agent answers with programs. The outcome of each program is a [`Turn`], an immutable record that
//! the journal keeps permanently. For each request, a compression strategy renders the earlier turns anew; it
//! is a pure function of them.
//!
//! A [`LispAgent`] defines the inputs and the form of the answer ([`Signature`]). [`LispMachinery`] builds
//! the machine that a runtime drives: it finds the program in an answer ([`extract`]), runs it, and reports
//! the calls that it waits for. An interrupted program runs again with the recorded results of its calls.

mod agent;
pub mod compression;
mod extract;
mod firewall;
mod machine;
mod mission;
mod prompt;
pub mod recall;
mod signature;
mod steps;
mod text;
mod thinking;
pub mod transcript;
mod turn;

pub use agent::{AgentError, LispAgent, LispOptions, MAX_DEPTH, MAX_TURNS, TURN_BUDGET, check_data_name};
pub use extract::{NoProgram, extract};
pub use machine::{LispMachine, LispMachinery};
pub use mission::{MissionError, fill_mission, without_firewalled};
pub use signature::{
    AnswerCheck, Field, InvalidSignature, Mismatch, Signature, Type, is_firewalled, mismatches,
};
pub use turn::{
    DefinedAs, Excerpt, MemoryChange, MemoryExtent, StoredMemory, Turn, TurnCall, TurnCallOutcome,
    TurnDefinition, TurnError, TurnSignal,
};
