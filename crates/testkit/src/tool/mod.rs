//! What every way of calling tools has to do.
//!
//! Whoever calls a tool, directly, from a loop, from a program, from outside, does it through one door, and so a call means the
//! same for all of them. A [`ToolCaller`] is one such way over one kind of files; [`conformance`] is the suite that each passes.

mod caller;
pub mod conformance;
mod counter;
mod script;

pub use caller::{CallConclusion, CallReport, CallSpec, CallerFactory, ToolCaller};
pub use counter::Counter;
pub use script::{Act, Measure, Outcome, Reading, Script, Seat, set_up, tools};
