//! The work that primitives do, counted where values are touched.
//!
//! An instruction costs a unit of fuel, but a library function may touch a million items or bytes. So everything that
//! walks a value, a text or a number counts its elementary operations here: one for a byte, [`ITEM`] for an item,
//! [`LIMB`] for a word of a large number. The meter charges a unit of fuel for every [`OPERATIONS_PER_UNIT`] of them, after
//! each call of a library function. That makes fuel proportional to work whatever the function, and it needs neither the meter
//! nor an error at the place where the work is done: comparing two keys of a map has neither.
//!
//! A single primitive may take long. After every [`OPERATIONS_PER_LOOK`] operations the host is asked whether the program is
//! to be stopped, and the operations are compared with the fuel that is left. If either says so, the thread *gives up*:
//! [`touch`] is true from then on, and walks end early with any result at all. Nobody ever sees that result, because the
//! machine raises the error before the next instruction.
//!
//! The counters belong to the thread, and to the machine that runs on it: see [`Watch`].

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use crate::error::{Error, ErrorKind};

/// The most fuel that a program uses between two polls of its deadline and cancellation.
pub(crate) const UNITS_PER_LOOK: u64 = 10_000;

/// Elementary operations for a unit of fuel.
pub(crate) const OPERATIONS_PER_UNIT: u64 = 64;
/// Elementary operations between two looks at whether the program is to be stopped, inside of one primitive.
const OPERATIONS_PER_LOOK: u64 = OPERATIONS_PER_UNIT * UNITS_PER_LOOK;

/// The operations that an item of a collection counts for: it is read, compared or cloned.
pub(crate) const ITEM: usize = 8;
/// The operations that an item counts for that is allocated, such as the entry of a map.
pub(crate) const ALLOCATED: usize = 64;
/// The operations that a word of a large number counts for each time it is multiplied.
pub(crate) const LIMB: usize = 2;

/// Asks the host whether a program is to be stopped.
pub(crate) type ShouldStop = Arc<dyn Fn() -> bool + Send + Sync>;

thread_local! {
    /// Operations that have not been charged.
    static PENDING: Cell<u64> = const { Cell::new(0) };
    /// How many may be pending before somebody looks.
    static LOOK_AT: Cell<u64> = const { Cell::new(u64::MAX) };
    /// How many the fuel is enough for, as of the last time that the meter looked.
    static BUDGET: Cell<u64> = const { Cell::new(u64::MAX) };
    /// Whether walks end early.
    static GIVES_UP: Cell<bool> = const { Cell::new(false) };
    /// Whether the host wants the program to stop.
    static STOPPED: Cell<bool> = const { Cell::new(false) };
    static SHOULD_STOP: RefCell<Option<ShouldStop>> = const { RefCell::new(None) };
}

#[cfg(feature = "tally")]
thread_local! {
    static TALLY: Cell<u64> = const { Cell::new(0) };
}

/// Counts elementary operations. Gives whether the walk that does them should give up.
#[inline]
pub(crate) fn touch(operations: usize) -> bool {
    #[cfg(feature = "tally")]
    TALLY.set(TALLY.get().saturating_add(operations as u64));
    let pending = PENDING.get().saturating_add(operations as u64);
    PENDING.set(pending);
    if pending >= LOOK_AT.get() {
        look_inside(pending);
    }
    GIVES_UP.get()
}

/// Counts the bytes of a text. Short texts are free: whoever touches them is charged for an item or an instruction.
#[inline]
pub(crate) fn touch_bytes(bytes: usize) -> bool {
    bytes >= 64 && touch(bytes)
}

/// Counts the items of a collection that are touched. Gives whether the walk should give up.
#[inline]
pub(crate) fn touch_items(items: usize) -> bool {
    touch(items.saturating_mul(ITEM))
}

/// Whether walks end early, so that what they come to means nothing.
pub(crate) fn gives_up() -> bool {
    GIVES_UP.get()
}

/// Whether there is at least a unit of fuel to charge.
#[inline]
pub(crate) fn is_due() -> bool {
    PENDING.get() >= OPERATIONS_PER_UNIT
}

/// Takes the units of fuel that are due. What is less than a unit stays.
pub(crate) fn take_units() -> u64 {
    let pending = PENDING.get();
    PENDING.set(pending % OPERATIONS_PER_UNIT);
    LOOK_AT.set(OPERATIONS_PER_LOOK);
    pending / OPERATIONS_PER_UNIT
}

/// Asks the host whether the program is to be stopped, and takes down how much fuel is left.
pub(crate) fn look(fuel_left: u64) -> bool {
    BUDGET.set(fuel_left.saturating_add(1).saturating_mul(OPERATIONS_PER_UNIT));
    ask()
}

/// Asks the host whether the program is to be stopped, during work that is not charged here.
pub(crate) fn look_again() -> bool {
    ask()
}

#[cold]
fn look_inside(pending: u64) {
    LOOK_AT.set(pending.saturating_add(OPERATIONS_PER_LOOK));
    if ask() || pending > BUDGET.get() {
        GIVES_UP.set(true);
    }
}

fn ask() -> bool {
    if !STOPPED.get() && SHOULD_STOP.with_borrow(|should_stop| should_stop.as_ref().is_some_and(|ask| ask()))
    {
        STOPPED.set(true);
        GIVES_UP.set(true);
    }
    STOPPED.get()
}

/// The error of a walk that gives up. The meter, which knows why, raises its own in its place.
#[cold]
pub(crate) fn given_up() -> Error {
    Error::new(ErrorKind::FuelExceeded, "the program used up its steps")
}

/// Whether the host wanted the program to stop.
pub(crate) fn is_stopped() -> bool {
    STOPPED.get()
}

/// While this exists, the counters of the thread are those of one machine. What was counted before is put back after.
pub(crate) struct Watch {
    outer: State,
}

struct State {
    pending: u64,
    look_at: u64,
    budget: u64,
    gives_up: bool,
    stopped: bool,
    should_stop: Option<ShouldStop>,
}

impl State {
    /// Puts the counters of the thread to this state, and gives what they were.
    fn swap(self) -> State {
        State {
            pending: PENDING.replace(self.pending),
            look_at: LOOK_AT.replace(self.look_at),
            budget: BUDGET.replace(self.budget),
            gives_up: GIVES_UP.replace(self.gives_up),
            stopped: STOPPED.replace(self.stopped),
            should_stop: SHOULD_STOP.replace(self.should_stop),
        }
    }
}

impl Watch {
    /// Begins to count for a machine that has so many operations left over from before.
    pub(crate) fn begin(pending: u64, should_stop: Option<ShouldStop>) -> Self {
        let fresh = State {
            pending,
            look_at: OPERATIONS_PER_LOOK,
            budget: u64::MAX,
            gives_up: false,
            stopped: false,
            should_stop,
        };
        Self { outer: fresh.swap() }
    }

    /// Allows so many operations before walks give up.
    pub(crate) fn allow(&self, operations: u64) {
        BUDGET.set(operations);
        LOOK_AT.set(OPERATIONS_PER_LOOK.min(operations));
    }

    /// The operations that are left over.
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

/// While this exists, what is touched is not charged.
pub(crate) struct UncountedScope {
    pending: u64,
    #[cfg(feature = "tally")]
    tally: u64,
}

impl UncountedScope {
    /// Begins to leave out what is touched.
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

/// Takes the number of elementary operations that this thread has counted since the last time. For tests of the fuel.
#[cfg(feature = "tally")]
pub fn take_tally() -> u64 {
    TALLY.take()
}
