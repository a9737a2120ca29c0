//! Tests of the providers, in one binary.
#![allow(clippy::unwrap_used, reason = "tests may unwrap, and so may their helpers")]

mod answers;
#[cfg(feature = "http")]
mod cassette;
mod errors;
mod hostile;
#[cfg(feature = "http")]
mod loopback;
mod policy;
mod prefixes;
mod requests;
mod rules;
mod scripted;
mod sse;
mod support;
