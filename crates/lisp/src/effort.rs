//! The work of primitives, counted where they touch values.
//!
//! An instruction costs a unit of fuel, but a library function may touch a million items or bytes. So
//! everything that walks a value, a text or a number counts its elementary operations here: one for a byte,
//! [`ITEM`] for an item, [`LIMB`] for a word of a large number. After each call of a library function, the
//! meter charges a unit of fuel for every [`OPERATIONS_PER_UNIT`] of them. So fuel is proportional to work in
//! every function, and the code that does the work needs neither the meter nor an error path: comparing two
//! keys of a map has neither.
//!
//! A single primitive may run long. After every [`OPERATIONS_PER_POLL`] operations the host is polled for a
//! stop request, and the operations are compared with the remaining fuel. If a stop is requested or the fuel
//! does not suffice, the thread *gives up*: [`touch`] returns true from then on, and walks end early with an
//! arbitrary result. No program sees that result, because the machine raises the error before the next
//! instruction.
//!
//! The counters belong to the thread and to the machine that runs on it: see [`Watch`].

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use crate::error::{Error, ErrorKind, Result};

/// The most fuel that a program uses between two polls of its deadline and cancellation.
pub(crate) const UNITS_PER_POLL: u64 = 10_000;

/// Elementary operations for a unit of fuel.
pub(crate) const OPERATIONS_PER_UNIT: u64 = 64;
/// Elementary operations between two polls for a stop request inside one primitive.
const OPERATIONS_PER_POLL: u64 = OPERATIONS_PER_UNIT * UNITS_PER_POLL;

/// Operations charged for an item of a collection that is read, compared or cloned.
pub(crate) const ITEM: usize = 8;
/// Operations charged for an item that is allocated, such as the entry of a map.
pub(crate) const ALLOCATED: usize = 64;
/// Operations charged for a word of a large number each time it is multiplied.
pub(crate) const LIMB: usize = 2;

/// Asks the host whether to stop the program.
pub(crate) type ShouldStop = Arc<dyn Fn() -> bool + Send + Sync>;

thread_local! {
    /// Operations that have not been charged.
    static PENDING: Cell<u64> = const { Cell::new(0) };
    /// The number of pending operations at which the next poll is due.
    static POLL_AT: Cell<u64> = const { Cell::new(u64::MAX) };
    /// The number of operations that the fuel covers, as of the last update by the meter.
    static BUDGET: Cell<u64> = const { Cell::new(u64::MAX) };
    /// True while walks end early.
    static GIVES_UP: Cell<bool> = const { Cell::new(false) };
    /// True once the host has requested a stop.
    static STOPPED: Cell<bool> = const { Cell::new(false) };
    static SHOULD_STOP: RefCell<Option<ShouldStop>> = const { RefCell::new(None) };
}

#[cfg(feature = "tally")]
thread_local! {
    static TALLY: Cell<u64> = const { Cell::new(0) };
}

/// Counts elementary operations. Returns true if the walk should give up.
#[inline]
pub(crate) fn touch(operations: usize) -> bool {
    #[cfg(feature = "tally")]
    TALLY.set(TALLY.get().saturating_add(operations as u64));
    let pending = PENDING.get().saturating_add(operations as u64);
    PENDING.set(pending);
    if pending >= POLL_AT.get() {
        poll_inside(pending);
    }
    GIVES_UP.get()
}

/// Counts the bytes of a text. Short texts are free: their callers are charged for an item or an instruction.
#[inline]
pub(crate) fn touch_bytes(bytes: usize) -> bool {
    bytes >= 64 && touch(bytes)
}

/// Counts the items of a collection that are touched. Returns true if the walk should give up.
#[inline]
pub(crate) fn touch_items(items: usize) -> bool {
    touch(items.saturating_mul(ITEM))
}

/// Returns true while walks end early and their results are meaningless.
pub(crate) fn gives_up() -> bool {
    GIVES_UP.get()
}

/// Returns whether at least a unit of fuel is due.
#[inline]
pub(crate) fn is_due() -> bool {
    PENDING.get() >= OPERATIONS_PER_UNIT
}

/// Takes the units of fuel that are due. A remainder of less than a unit stays.
pub(crate) fn take_units() -> u64 {
    let pending = PENDING.get();
    PENDING.set(pending % OPERATIONS_PER_UNIT);
    POLL_AT.set(OPERATIONS_PER_POLL);
    pending / OPERATIONS_PER_UNIT
}

/// Polls the host for a stop request and updates the remaining fuel.
pub(crate) fn poll_host(fuel_left: u64) -> bool {
    BUDGET.set(fuel_left.saturating_add(1).saturating_mul(OPERATIONS_PER_UNIT));
    poll_host_again()
}

#[cold]
fn poll_inside(pending: u64) {
    POLL_AT.set(pending.saturating_add(OPERATIONS_PER_POLL));
    if poll_host_again() || pending > BUDGET.get() {
        GIVES_UP.set(true);
    }
}

/// Polls the host for a stop request during work that is not charged here.
pub(crate) fn poll_host_again() -> bool {
    if !STOPPED.get() && SHOULD_STOP.with_borrow(|should_stop| should_stop.as_ref().is_some_and(|ask| ask()))
    {
        STOPPED.set(true);
        GIVES_UP.set(true);
    }
    STOPPED.get()
}

/// Fails if a walk gives up.
#[inline]
pub(crate) fn check(gives_up: bool) -> Result<()> {
    if gives_up { Err(given_up()) } else { Ok(()) }
}

/// The error of a walk that gives up. The meter knows the reason and replaces it.
#[cold]
pub(crate) fn given_up() -> Error {
    Error::new(ErrorKind::FuelExceeded, "the program used up its steps")
}

/// Returns whether the host has requested a stop.
pub(crate) fn is_stopped() -> bool {
    STOPPED.get()
}

/// Assigns the counters of the thread to one machine. Dropping it restores the previous counters.
pub(crate) struct Watch {
    outer: State,
}

struct State {
    pending: u64,
    poll_at: u64,
    budget: u64,
    gives_up: bool,
    stopped: bool,
    should_stop: Option<ShouldStop>,
}

impl State {
    /// Replaces the counters of the thread and returns the previous ones.
    fn swap(self) -> State {
        State {
            pending: PENDING.replace(self.pending),
            poll_at: POLL_AT.replace(self.poll_at),
            budget: BUDGET.replace(self.budget),
            gives_up: GIVES_UP.replace(self.gives_up),
            stopped: STOPPED.replace(self.stopped),
            should_stop: SHOULD_STOP.replace(self.should_stop),
        }
    }
}

impl Watch {
    /// Begins to count for a machine that has `pending` uncharged operations.
    pub(crate) fn begin(pending: u64, should_stop: Option<ShouldStop>) -> Self {
        let fresh = State {
            pending,
            poll_at: OPERATIONS_PER_POLL,
            budget: u64::MAX,
            gives_up: false,
            stopped: false,
            should_stop,
        };
        Self { outer: fresh.swap() }
    }

    /// Sets the number of operations after which walks give up.
    pub(crate) fn allow(&self, operations: u64) {
        BUDGET.set(operations);
        POLL_AT.set(OPERATIONS_PER_POLL.min(operations));
    }

    /// Returns the number of uncharged operations.
    pub(crate) fn pending(&self) -> u64 {
        PENDING.get()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let outer = State { should_stop: self.outer.should_stop.take(), ..self.outer };
        outer.swap();
    }
}

/// A scope whose operations are not charged.
pub(crate) struct UncountedScope {
    pending: u64,
    #[cfg(feature = "tally")]
    tally: u64,
}

impl UncountedScope {
    pub(crate) fn begin() -> Self {
        Self {
            pending: PENDING.get(),
            #[cfg(feature = "tally")]
            tally: TALLY.get(),
        }
    }
}

impl Drop for UncountedScope {
    fn drop(&mut self) {
        PENDING.set(self.pending);
        #[cfg(feature = "tally")]
        TALLY.set(self.tally);
    }
}

/// Takes the number of elementary operations that this thread has counted since the last call. For tests of
/// the fuel.
#[cfg(feature = "tally")]
pub fn take_tally() -> u64 {
    TALLY.take()
}
