//! Conformance of all ways of calling tools.
//!
//! All callers of tools (direct calls, loops, programs, other processes) use one entry point, so a call has
//! the same meaning for all of them. A [`ToolCaller`] is one such caller over one kind of files.
//! [`conformance`] is the suite that each passes.

mod caller;
pub mod conformance;
mod counter;
mod script;

pub use caller::{CallConclusion, CallReport, CallSpec, CallerFactory, ToolCaller};
pub use counter::Counter;
pub use script::{Act, Measure, Outcome, Reading, Script, Seat, set_up, tools};
