//! Agents with an engine: a stand-in program and the real one.

mod approvals;
mod ends;
mod failures;
mod real;
mod resume;
mod runs;
mod stand_in;
