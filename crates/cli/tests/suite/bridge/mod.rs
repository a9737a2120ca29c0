//! Agents with an engine: a stand-in program and the real one.

mod approvals;
mod codex;
mod codex_stand_in;
mod ends;
mod failures;
mod pipes;
mod real;
mod real_codex;
mod resume;
mod runs;
mod stand_in;
mod tools;
