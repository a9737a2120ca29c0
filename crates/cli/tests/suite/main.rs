//! Tests that run the real binary of the command.
#![allow(clippy::unwrap_used, reason = "tests may unwrap, and so may their helpers")]

mod agents;
mod approvals;
mod chat;
mod churn;
mod command;
mod config;
mod endings;
mod erasing;
mod explain;
mod exports;
mod failures;
mod files;
mod help;
mod keys;
mod kills;
mod lisp_agents;
mod lisp_eval;
mod lisp_repl;
mod lisp_run;
mod listing;
mod log;
mod model;
mod moving;
mod panics;
mod pauses;
mod pty;
mod replaced;
mod sessions;
mod stage;
mod stores;
mod taking_over;
mod terminal;
mod truncated;
