//! What a session has spent.
//!
//! The ledger is folded over *all* records, visible or not: neither a rollback nor a rewind gives anything back. A
//! reservation counts as spent until it is settled. One that a crash left open stays charged at its estimate when it was
//! for a request, since the model may have answered. One for a call is released once it is clear that the call does not
//! run: it ended, it started anew, its evaluation ended, or the session went back.

use std::collections::BTreeMap;

use crate::budget::{Amounts, Reservation};
use crate::id::{CallId, EvaluationId, ReservationId};
use crate::journal::{BudgetCharged, CallStarted, Record, RecordBody};

/// What was spent and what is held back.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ledger {
    charged: Amounts,
    open: BTreeMap<ReservationId, (Option<Holder>, Amounts)>,
    /// What counted as spent when each evaluation was started.
    before: imbl::OrdMap<EvaluationId, Amounts>,
}

/// The call that a reservation is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Holder {
    call: CallId,
    evaluation: EvaluationId,
}

impl Ledger {
    /// What was charged.
    pub fn charged(&self) -> Amounts {
        self.charged
    }

    /// What is held back.
    pub fn reserved(&self) -> Amounts {
        self.open.values().fold(Amounts::ZERO, |sum, (_, amounts)| sum.plus(*amounts))
    }

    /// What counts as spent: charged or held back.
    pub fn committed(&self) -> Amounts {
        self.charged.plus(self.reserved())
    }

    /// What counts as spent, without what is held back for a call.
    pub fn committed_without(&self, call: CallId) -> Amounts {
        let others = self.open.values().filter(|(holder, _)| holder.is_none_or(|holder| holder.call != call));
        others.fold(self.charged, |sum, (_, amounts)| sum.plus(*amounts))
    }

    /// What counted as spent before an evaluation, and so is not its own.
    pub fn committed_before(&self, evaluation: EvaluationId) -> Amounts {
        self.before.get(&evaluation).copied().unwrap_or_default()
    }

    /// Takes in a record, visible or not.
    pub(super) fn take_in(&mut self, record: &Record) {
        match &record.body {
            RecordBody::EvaluationStarted(started) => {
                self.before.insert(started.evaluation_id, self.committed());
            }
            RecordBody::RequestStarted(request) => self.reserve(None, request.reservation),
            RecordBody::CallStarted(started) => {
                let CallStarted { call_id: call, evaluation_id: evaluation, .. } = **started;
                self.release(|holder| holder.call == call);
                self.reserve(Some(Holder { call, evaluation }), started.reservation);
            }
            RecordBody::CallFinished(finished) => self.release(|holder| holder.call == finished.call_id),
            RecordBody::EvaluationFinished(finished) => {
                self.release(|holder| holder.evaluation == finished.evaluation_id);
            }
            RecordBody::Rewound(_) => self.release(|_| true),
            RecordBody::BudgetCharged(charge) => self.charge(charge),
            _ => {}
        }
    }

    fn reserve(&mut self, holder: Option<Holder>, reservation: Option<Reservation>) {
        if let Some(reservation) = reservation {
            self.open.insert(reservation.id, (holder, reservation.amounts));
        }
    }

    /// Gives back what is held for calls that fulfil a condition.
    fn release(&mut self, condition: impl Fn(Holder) -> bool) {
        self.open.retain(|_, (holder, _)| !holder.is_some_and(&condition));
    }

    fn charge(&mut self, charge: &BudgetCharged) {
        if let Some(reservation) = charge.reservation {
            self.open.remove(&reservation);
        }
        self.charged = self.charged.plus(charge.amounts);
    }
}
