//! Discarded effects that calls of this process were given.

use backstitch_core::id::CallId;
use backstitch_core::journal::Point;
use backstitch_core::view::{CallStatus, JournalView};

/// The starts of discarded calls, each with the call that may reuse its effect. They matter until records say the same,
/// so that two equal calls of one turn are not given one effect.
#[derive(Debug, Default)]
pub(crate) struct ClaimedEffects(Vec<(Point, CallId)>);

impl ClaimedEffects {
    /// Forgets the claims of calls that have ended or were discarded.
    pub(crate) fn forget_ended(&mut self, view: &JournalView) {
        let is_pending =
            |call: CallId| view.call(call).is_some_and(|call| call.status() == CallStatus::Pending);
        self.0.retain(|(_, call)| is_pending(*call));
    }

    pub(crate) fn is_of_another(&self, effect: Point, call: CallId) -> bool {
        self.0.iter().any(|(at, by)| *at == effect && *by != call)
    }

    pub(crate) fn add(&mut self, effect: Point, call: CallId) {
        self.0.push((effect, call));
    }
}
