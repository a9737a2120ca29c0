//! Tests of the runtime, in one binary.
#![allow(clippy::unwrap_used, reason = "tests may unwrap, and so may their helpers")]

mod adoption;
mod approvals;
mod approved;
mod asking;
mod attempts;
mod boundaries;
mod callers;
mod captures;
mod changes;
mod chaos;
mod checkpoints;
mod commits;
mod compensating;
#[path = "processes.rs"]
#[expect(clippy::duplicate_mod, reason = "the same tests run in a sandbox")]
mod confined_processes;
mod counting;
mod coverage;
mod crash;
mod cuts;
mod disk;
mod driving;
mod dropped;
mod escape;
mod fenced;
mod files;
mod findings;
mod following;
mod going_back;
mod harness;
mod history;
mod host_snapshots;
mod idle;
mod index;
mod interleaved;
mod leases;
mod limits;
mod lisp;
mod lisp_stops;
mod lisp_sub_agents;
mod locked;
mod mischief;
mod nested;
mod one_state;
mod opening;
mod operations;
mod others;
mod outside;
mod own_changes;
mod people;
mod processes;
mod prompts;
mod reading;
mod redaction;
mod repeated;
mod replaced;
mod resources;
mod restarts;
mod restoring;
mod room;
mod runner;
mod sandbox;
mod secrets;
mod spans;
mod stopped_answers;
mod structured;
mod sub_agents;
#[path = "processes.rs"]
#[expect(clippy::duplicate_mod, reason = "the same tests run in a sandbox, with a supervisor")]
mod supervised_confined_processes;
#[path = "processes.rs"]
#[expect(clippy::duplicate_mod, reason = "the same tests run with a supervisor")]
mod supervised_processes;
mod tailor;
mod truncated;
mod waits;
mod watching;
mod workers;
