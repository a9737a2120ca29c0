//! Spending of a session.
//!
//! The ledger is folded over *all* records, visible or not: neither a rollback nor a rewind refunds anything.
//! A reservation counts as spent until it is settled. If a crash left a reservation of a request open, it
//! stays charged at its estimate, since the model may have answered. A reservation of a call is released once
//! it is clear that the call does not run: it ended, it started again, its evaluation ended, or the session
//! was rewound.

use std::collections::BTreeMap;

use crate::budget::{Amounts, Reservation};
use crate::id::{CallId, EvaluationId, ReservationId};
use crate::journal::{BudgetCharged, CallStarted, Record, RecordBody};
use crate::pack::packed_structs;

/// Amounts charged and amounts held back.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ledger {
    charged: Amounts,
    open: BTreeMap<ReservationId, (Option<Holder>, Amounts)>,
    /// Amounts committed before each evaluation started.
    before: imbl::OrdMap<EvaluationId, Amounts>,
}

/// The call that holds a reservation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Holder {
    call: CallId,
    evaluation: EvaluationId,
}

packed_structs! {
    Ledger { charged, open, before }
    Holder { call, evaluation }
}

impl Ledger {
    /// Returns the amounts charged.
    pub fn charged(&self) -> Amounts {
        self.charged
    }

    /// Returns the amounts held back.
    pub fn reserved(&self) -> Amounts {
        self.open.values().fold(Amounts::ZERO, |sum, (_, amounts)| sum.plus(*amounts))
    }

    /// Whether a reservation has not been settled.
    pub fn is_open(&self, reservation: ReservationId) -> bool {
        self.open.contains_key(&reservation)
    }

    /// Returns the amounts charged or held back.
    pub fn committed(&self) -> Amounts {
        self.charged.plus(self.reserved())
    }

    /// Returns the committed amounts without those held back for these calls.
    pub fn committed_without(&self, calls: &[CallId]) -> Amounts {
        let is_other = |holder: Option<Holder>| holder.is_none_or(|holder| !calls.contains(&holder.call));
        let others = self.open.values().filter(|(holder, _)| is_other(*holder));
        others.fold(self.charged, |sum, (_, amounts)| sum.plus(*amounts))
    }

    /// Returns the amounts committed before an evaluation started, which are not its own.
    pub fn committed_before(&self, evaluation: EvaluationId) -> Amounts {
        self.before.get(&evaluation).copied().unwrap_or_default()
    }

    /// Applies a record, visible or not.
    pub(super) fn fold_record(&mut self, record: &Record) {
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

    /// Releases the reservations of calls that fulfil a condition.
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
