//! Data, rules and ports of Backstitch. No IO.
//!
//! Everything that happens in a session is a record in its journal; everything else is a view, a pure
//! function of records. This crate holds the data ([`message`], [`session`], [`journal`]), the rules
//! (reducers, folds, builders, limits) and the ports, traits for everything outside of the process
//! ([`ports`]). Adapters live in crates of their own.

mod hex;
mod pack;
mod payload;
mod text_form;

#[doc(hidden)]
#[path = "private/mod.rs"]
pub mod __private;
pub mod approval;
pub mod budget;
pub mod code;
pub mod crash;
pub mod digest;
pub mod execution;
pub mod extra;
pub mod id;
pub mod journal;
pub mod json;
pub mod machine;
pub mod message;
pub mod mode;
pub mod object;
pub mod ports;
pub mod prompt;
pub mod redaction;
pub mod rng;
pub mod secrets;
pub mod session;
pub mod slices;
pub mod storable;
pub mod text;
pub mod time;
pub mod tool;
pub mod tool_spec;
pub mod view;
