//! What a session has spent.
//!
//! The ledger is folded over *all* records, visible or not: neither a rollback nor a rewind gives anything back. A
//! reservation counts as spent until it is settled. One that a crash left open stays charged at its estimate when it was
//! for a request, since the model may have answered, and is released when it was for a call that has since ended or started
//! anew.

use std::collections::BTreeMap;

use crate::budget::{Amounts, Reservation};
use crate::id::{CallId, ReservationId};
use crate::journal::BudgetCharged;

/// What was spent and what is held back.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ledger {
    charged: Amounts,
    open: BTreeMap<ReservationId, (Option<CallId>, Amounts)>,
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

    pub(super) fn reserve(&mut self, call: Option<CallId>, reservation: Option<Reservation>) {
        if let Some(call) = call {
            self.release(call);
        }
        if let Some(reservation) = reservation {
            self.open.insert(reservation.id, (call, reservation.amounts));
        }
    }

    pub(super) fn release(&mut self, call: CallId) {
        self.open.retain(|_, (holder, _)| *holder != Some(call));
    }

    pub(super) fn charge(&mut self, charge: &BudgetCharged) {
        if let Some(reservation) = charge.reservation {
            self.open.remove(&reservation);
        }
        self.charged = self.charged.plus(charge.amounts);
    }
}
