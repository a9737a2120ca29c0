//! The integration tests of the crate, in one binary: linking is what takes the time.
#![allow(clippy::unwrap_used, reason = "tests may unwrap, and so may their helpers")]

mod batches;
mod caches;
mod conversation;
mod drafts;
mod execution;
mod filesystem;
mod fold_model;
mod fold_problems;
mod fuzz;
mod journal;
mod journal_steps;
mod journals;
mod ledger;
mod machine;
mod memory_filesystem;
mod message;
mod message_storage;
mod observers;
mod prompt;
mod prompt_output;
mod purity;
mod record_codec;
mod records;
mod resources;
mod samples;
mod session;
mod session_model;
mod session_rules;
mod slices;
mod snapshots;
mod stored_snapshots;
mod strategies;
mod transcript;
mod views;
mod workspace_roots;
