//! Tests of the providers, in one binary.
#![allow(clippy::unwrap_used, reason = "tests may unwrap, and so may their helpers")]

mod answers;
#[cfg(feature = "http")]
mod cassette;
mod compatible;
mod dialects;
mod errors;
#[cfg(feature = "http")]
mod finish;
mod forms;
mod hostile;
mod lengths;
#[cfg(feature = "http")]
mod limits;
#[cfg(feature = "http")]
mod lisp;
#[cfg(feature = "http")]
mod loopback;
mod media;
#[cfg(feature = "http")]
mod parity;
mod policy;
mod prefixes;
mod requests;
mod rules;
mod scripted;
#[cfg(feature = "http")]
mod secrets;
mod sse;
#[cfg(feature = "http")]
mod structured;
mod support;
#[cfg(feature = "http")]
mod switching;
mod threads;
mod usage;
