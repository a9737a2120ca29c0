//! History of a session: points, rewinds, forks, and decisions about calls.

mod apply;
mod effects;
mod fork;
mod locate;
mod resolve;
mod restore;
mod rewind;
mod undo;

pub use apply::{ApplyOptions, ApplyReport, undoable_apply};
pub(crate) use effects::pauses_of;
pub use fork::Fork;
pub use locate::{ResolvedPoint, find_call, locate, locate_with_view};
pub use rewind::RewindReport;
