//! Time, navigated: places in a session, going back to them, forking from them, and deciding what became of a call.

mod effects;
mod fork;
mod locate;
mod resolve;
mod rewind;

pub(crate) use effects::pauses_of;
pub use fork::Fork;
pub use locate::{ResolvedPoint, find_call, locate};
pub use rewind::RewindReport;
