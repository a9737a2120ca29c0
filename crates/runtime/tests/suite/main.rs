//! Tests of the runtime, in one binary.

mod files;
mod harness;
mod runner;
