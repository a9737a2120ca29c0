//! The tests of the Lisp agent, in one binary.
#![allow(clippy::unwrap_used, reason = "tests may unwrap, and so may their helpers")]

mod coalesced;
mod configuration;
mod cuts;
mod defaults;
mod extraction;
mod golden;
mod interrupted;
mod machine;
mod mission;
mod pairs;
mod properties;
mod recall;
mod signature;
mod simulation;
mod support;
mod transcripts;
mod turns;
