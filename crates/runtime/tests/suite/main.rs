//! Tests of the runtime, in one binary.
#![allow(clippy::unwrap_used, reason = "tests may unwrap, and so may their helpers")]

mod asking;
mod callers;
mod checkpoints;
mod commits;
mod counting;
mod coverage;
mod crash;
mod cuts;
mod disk;
mod driving;
mod files;
mod findings;
mod harness;
mod history;
mod idle;
mod limits;
mod lisp;
mod lisp_stops;
mod lisp_sub_agents;
mod mischief;
mod outside;
mod people;
mod processes;
mod prompts;
mod replaced;
mod resources;
mod restarts;
mod runner;
mod secrets;
mod spans;
mod structured;
mod sub_agents;
mod tailor;
mod watching;
