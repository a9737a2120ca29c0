//! Tools for tests of calls, and a resource that they change.

mod counter;
mod script;

pub use counter::Counter;
pub use script::{Act, CallSpec, Measure, Outcome, Reading, Script, Seat, set_up, tools};
