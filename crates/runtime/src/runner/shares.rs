//! Shares of a budget: what each sub-agent of a turn may spend.
//!
//! The first call of a turn that starts finds out what is left of the budget, and every sub-agent of the turn gets an
//! equal part of that, whether it starts at once or after another one has ended. What a sub-agent does not spend returns
//! to its parent, and not to the sub-agents beside it. The shares of a turn never exceed what is left: a share that was
//! not reserved yet is computed again from what the ledger says at that moment, and can only become smaller.

use std::sync::{Mutex, PoisonError};

use backstitch_core::budget::{Amounts, Limits};
use backstitch_core::id::CallId;

/// The calls of a turn that have not started, and the share of each sub-agent among them.
#[derive(Debug, Default)]
pub(crate) struct TurnShares(Mutex<UnstartedCalls>);

#[derive(Debug, Default)]
struct UnstartedCalls {
    calls: Vec<CallId>,
    /// Those of the calls that sub-agents answer.
    agents: Vec<CallId>,
    /// The first share of the turn. Later ones are not larger.
    first: Option<Limits>,
}

impl TurnShares {
    /// Creates the shares of a turn with these calls, of which `agents` are answered by sub-agents.
    pub(crate) fn new(calls: Vec<CallId>, agents: Vec<CallId>) -> Self {
        Self(Mutex::new(UnstartedCalls { calls, agents, first: None }))
    }

    /// Returns the share of a call that starts now. `committed` returns what is spent or reserved for others than the
    /// given calls, which may have reservations from before an interruption.
    pub(super) fn take(
        &self,
        call: CallId,
        limits: Limits,
        committed: impl FnOnce(&[CallId]) -> Amounts,
    ) -> Limits {
        let mut turn = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !turn.calls.contains(&call) {
            turn.calls.push(call);
        }
        // Each call that has not started costs at least itself.
        let themselves = Amounts { calls: turn.calls.len() as u64, ..Amounts::ZERO };
        let left = limits.left_after(committed(&turn.calls).plus(themselves));
        let share = left.share(turn.agents.len() as u64);
        let share = turn.first.map_or(share, |first| share.within(&first));
        turn.first = Some(share);
        turn.calls.retain(|one| *one != call);
        turn.agents.retain(|one| *one != call);
        share
    }
}
