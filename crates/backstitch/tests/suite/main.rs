//! The integration tests of the crate, in one binary.
#![allow(clippy::unwrap_used, reason = "a test that cannot continue fails")]

mod addresses;
mod agent_files;
mod agent_workspace;
#[cfg(unix)]
mod checkouts;
mod deciding;
mod door;
mod fallbacks;
mod fetch;
mod file_tools;
mod going_back;
mod guides;
#[path = "../../../runtime/tests/suite/harness.rs"]
mod harness;
mod imports;
mod looking;
mod models;
mod place;
mod plan_tools;
#[cfg(unix)]
mod programs;
mod recorded_agents;
mod served;
#[cfg(unix)]
mod shell;
mod storing;
mod take_over;
mod told;
mod tool_macro;
mod workshop;
