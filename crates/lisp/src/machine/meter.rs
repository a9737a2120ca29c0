//! Fuel and memory: what a run has used.
//!
//! Memory is accounted for in two steps. Every allocation adds to an estimate, which never falls by itself although
//! values are freed all the time: so it is an upper bound of what is alive. When the estimate reaches the threshold,
//! the machine walks everything alive and sets the estimate to what it found. A program is over its limit when what is
//! alive is. Between two walks the estimate may grow by a quarter of the limit, which is the most that can be held beyond it.

use crate::effort::{self, UNITS_PER_LOOK};
use crate::error::{Error, ErrorKind, Result};

/// The counters of one run.
pub(crate) struct Meter {
    /// The fuel that may be used before the next look.
    window: u64,
    /// The fuel beyond it.
    reserve: u64,
    fuel_limit: u64,
    estimate: usize,
    threshold: usize,
    limit: usize,
    requested: usize,
    /// The fuel that was left at the last walk.
    fuel_at_walk: u64,
}

impl Meter {
    pub(crate) fn new(fuel: u64, memory_bytes: usize) -> Self {
        Self {
            window: 0,
            reserve: fuel,
            fuel_limit: fuel,
            estimate: 0,
            threshold: memory_bytes,
            limit: memory_bytes,
            requested: 0,
            fuel_at_walk: u64::MAX,
        }
    }

    /// Fuel used so far.
    pub(crate) fn fuel_used(&self) -> u64 {
        self.fuel_limit - self.fuel_left()
    }

    fn fuel_left(&self) -> u64 {
        self.window + self.reserve
    }

    /// Uses up fuel.
    #[inline]
    pub(crate) fn work(&mut self, units: u64) -> Result<()> {
        match self.window.checked_sub(units) {
            Some(left) => {
                self.window = left;
                Ok(())
            }
            None => self.look(units),
        }
    }

    /// Uses up fuel for what primitives have done since the last time; see [`crate::effort`].
    #[inline]
    pub(crate) fn pay(&mut self) -> Result<()> {
        if effort::is_due() { self.pay_units() } else { Ok(()) }
    }

    fn pay_units(&mut self) -> Result<()> {
        let units = effort::take_units();
        if effort::gives_up() { self.look(units) } else { self.work(units) }
    }

    /// Whether there is so much fuel left before the next look.
    #[inline]
    pub(crate) fn has_fuel(&self, units: u64) -> bool {
        self.window >= units
    }

    /// Uses up fuel that is known to be there.
    #[inline]
    pub(crate) fn spend(&mut self, units: u64) {
        debug_assert!(self.has_fuel(units));
        self.window = self.window.saturating_sub(units);
    }

    /// The window is used up: looks whether the program is to be stopped, and opens the next one.
    #[cold]
    fn look(&mut self, units: u64) -> Result<()> {
        let units = units.saturating_add(effort::take_units());
        let left = self.fuel_left();
        if effort::look(left.saturating_sub(units)) {
            // Nothing more is done, whoever asks.
            (self.window, self.reserve) = (0, left);
            return Err(stopped());
        }
        let Some(left) = left.checked_sub(units) else { return Err(self.out_of_fuel()) };
        self.window = left.min(UNITS_PER_LOOK.saturating_sub(units));
        self.reserve = left - self.window;
        Ok(())
    }

    #[cold]
    fn out_of_fuel(&mut self) -> Error {
        (self.window, self.reserve) = (0, 0);
        Error::new(ErrorKind::FuelExceeded, format!("the program used up its {} steps", self.fuel_limit))
            .hint("an endless loop or sequence, or too much data for one program")
    }

    /// Accounts for bytes about to be allocated. An error means that the machine has to look what is alive: it then
    /// either fails for good or the allocation is tried again.
    #[inline]
    pub(crate) fn allocate(&mut self, bytes: usize) -> Result<()> {
        let estimate = self.estimate.saturating_add(bytes);
        if estimate > self.threshold {
            return Err(self.pressure(bytes));
        }
        self.estimate = estimate;
        Ok(())
    }

    /// Adds to the estimate what is small and allocated already.
    #[inline]
    pub(crate) fn note(&mut self, bytes: usize) {
        self.estimate = self.estimate.saturating_add(bytes);
    }

    /// Whether the estimate has passed the threshold.
    #[inline]
    pub(crate) fn is_pressed(&self) -> bool {
        self.estimate > self.threshold
    }

    #[cold]
    fn pressure(&mut self, bytes: usize) -> Error {
        self.requested = bytes;
        self.exceeded()
    }

    /// The error for a program that holds too much.
    #[cold]
    pub(crate) fn exceeded(&self) -> Error {
        Error::new(ErrorKind::MemoryExceeded, format!("the program holds more than {} bytes", self.limit))
    }

    /// Takes over what a walk has found alive. Gives whether the program may go on.
    pub(crate) fn settle(&mut self, alive: usize) -> bool {
        let requested = std::mem::take(&mut self.requested);
        self.estimate = alive;
        self.threshold = self.limit.max(alive.saturating_add(self.limit / 4));
        // An allocation that is refused again right after a walk will always be.
        let stuck = requested > 0 && self.fuel_at_walk.saturating_sub(self.fuel_left()) < 64;
        self.fuel_at_walk = self.fuel_left();
        !stuck && alive.saturating_add(requested) <= self.limit
    }

    /// Whether an allocation was refused since the last walk.
    pub(crate) fn was_refused(&self) -> bool {
        self.requested > 0
    }

    /// How much may be alive.
    pub(crate) fn limit(&self) -> usize {
        self.limit
    }
}

/// The error for a program that its host has stopped.
#[cold]
pub(super) fn stopped() -> Error {
    Error::new(ErrorKind::Stopped, "the program was stopped from outside")
}
