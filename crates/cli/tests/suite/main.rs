//! Tests that run the real binary of the command.
#![allow(clippy::unwrap_used, reason = "tests may unwrap, and so may their helpers")]

#[cfg(feature = "acp")]
mod acp;
mod agents;
mod applying;
mod approvals;
mod backups;
mod beside;
mod bridge;
mod chat;
mod churn;
mod command;
mod command_tools;
mod compact;
mod completions;
mod config;
mod containment;
mod continuing;
mod day;
mod doctor;
mod endings;
mod erasing;
mod everywhere;
mod explain;
mod exports;
mod failures;
mod fallbacks;
mod fetch;
mod files;
mod foreign_client;
mod guard;
mod help;
mod imports;
mod in_place;
mod input;
mod inspector;
mod instructions;
mod isolated;
mod keys;
mod kills;
mod kinds;
mod lisp_agents;
mod lisp_eval;
mod lisp_repl;
mod lisp_run;
mod listing;
mod log;
mod log_lines;
mod logging;
mod long;
mod long_answers;
#[cfg(feature = "mcp")]
mod mcp;
mod model;
#[cfg(target_os = "linux")]
mod modes;
mod money;
mod moves;
mod moving;
#[cfg(feature = "otlp")]
mod otlp;
mod own_providers;
mod panics;
mod pauses;
#[cfg(feature = "postgres")]
mod postgres;
mod prompts;
mod pty;
mod queries;
mod readable;
mod real_work;
mod recordings;
mod remainders;
mod replaced;
mod repositories;
mod rust_agents;
#[cfg(feature = "mcp")]
mod same_agent;
mod sandbox;
mod screen;
mod serve;
mod sessions;
mod show_call;
mod single_files;
mod stage;
mod steering;
mod store_errors;
mod stores;
mod supervised;
mod taking_over;
mod terminal;
mod transcripts;
mod truncated;
mod trust;
mod version_1;
mod workers;
