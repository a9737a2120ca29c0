//! History of a session: points, rewinds, forks, and decisions about calls.

mod apply;
mod effects;
mod fork;
mod locate;
mod neighbours;
mod own;
mod repeats;
mod resolve;
mod restore;
mod rewind;
mod shared;
mod undo;
mod withdraw;

pub use apply::{ApplyDirection, ApplyOptions, ApplyReport, undoable_apply};
pub use effects::DiscardedEffect;
pub(crate) use fork::check_room;
pub use fork::{Fork, ForkReport, discarded_effects};
pub use locate::{ResolvedPoint, find_call, locate, locate_with_view};
pub use own::{RewindScope, RewoundFiles, RewoundHalf};
pub(crate) use repeats::{Repetition, effects_left_by, pauses_of};
pub(crate) use resolve::offered_result;
pub use restore::FileRestoreReport;
pub use rewind::RewindReport;
pub use withdraw::Withdrawal;
