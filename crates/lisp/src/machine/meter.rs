//! Fuel and memory use of a run.
//!
//! Memory is accounted for in two steps. Every allocation adds to an estimate. It never falls by itself
//! although values are freed all the time, so it is an upper bound of live memory. When the estimate reaches
//! the threshold, the machine walks all live values and sets the estimate to their size. A program exceeds
//! its limit if its live memory does. Between two walks the estimate may grow by a quarter of the limit,
//! which bounds the excess.

use crate::effort::{self, UNITS_PER_POLL};
use crate::error::{Error, ErrorKind, Result};

/// The counters of one run.
#[derive(Default)]
pub(crate) struct Meter {
    /// The fuel until the next poll.
    window: u64,
    /// The fuel beyond the window.
    reserve: u64,
    fuel_limit: u64,
    estimate: usize,
    threshold: usize,
    limit: usize,
    requested: usize,
    /// The remaining fuel at the last walk.
    fuel_at_walk: u64,
}

impl Meter {
    pub(crate) fn new(fuel: u64, memory_bytes: usize) -> Self {
        Self {
            reserve: fuel,
            fuel_limit: fuel,
            threshold: memory_bytes,
            limit: memory_bytes,
            fuel_at_walk: u64::MAX,
            ..Self::default()
        }
    }

    pub(crate) fn fuel_used(&self) -> u64 {
        self.fuel_limit - self.fuel_left()
    }

    fn fuel_left(&self) -> u64 {
        self.window + self.reserve
    }

    /// Consumes fuel.
    #[inline]
    pub(crate) fn work(&mut self, units: u64) -> Result<()> {
        match self.window.checked_sub(units) {
            Some(left) => {
                self.window = left;
                Ok(())
            }
            None => self.poll_host(units),
        }
    }

    /// Consumes fuel for the work of primitives since the last call; see [`crate::effort`].
    #[inline]
    pub(crate) fn pay(&mut self) -> Result<()> {
        if effort::is_due() { self.pay_units() } else { Ok(()) }
    }

    fn pay_units(&mut self) -> Result<()> {
        let units = effort::take_units();
        if effort::gives_up() { self.poll_host(units) } else { self.work(units) }
    }

    /// Returns whether this much fuel is left before the next poll.
    #[inline]
    pub(crate) fn has_fuel(&self, units: u64) -> bool {
        self.window >= units
    }

    /// Consumes fuel that is known to be available.
    #[inline]
    pub(crate) fn spend(&mut self, units: u64) {
        debug_assert!(self.has_fuel(units));
        self.window = self.window.saturating_sub(units);
    }

    /// Polls for a stop request at the end of a window, and opens the next one.
    #[cold]
    fn poll_host(&mut self, units: u64) -> Result<()> {
        let units = units.saturating_add(effort::take_units());
        let left = self.fuel_left();
        if effort::poll_host(left.saturating_sub(units)) {
            // All further work is refused.
            (self.window, self.reserve) = (0, left);
            return Err(stopped());
        }
        let Some(left) = left.checked_sub(units) else { return Err(self.out_of_fuel()) };
        self.window = left.min(UNITS_PER_POLL.saturating_sub(units));
        self.reserve = left - self.window;
        Ok(())
    }

    #[cold]
    fn out_of_fuel(&mut self) -> Error {
        (self.window, self.reserve) = (0, 0);
        Error::new(ErrorKind::FuelExceeded, format!("the program used up its {} steps", self.fuel_limit))
            .hint("an endless loop or sequence, or too much data for one program")
    }

    /// Accounts for bytes about to be allocated. An error means that the machine has to count live memory:
    /// then it either fails for good or retries the allocation.
    #[inline]
    pub(crate) fn allocate(&mut self, bytes: usize) -> Result<()> {
        let estimate = self.estimate.saturating_add(bytes);
        if estimate > self.threshold {
            return Err(self.pressure(bytes));
        }
        self.estimate = estimate;
        Ok(())
    }

    /// Adds a small allocation that has already been made to the estimate.
    #[inline]
    pub(crate) fn note(&mut self, bytes: usize) {
        self.estimate = self.estimate.saturating_add(bytes);
    }

    /// Returns whether the estimate has passed the threshold.
    #[inline]
    pub(crate) fn is_pressed(&self) -> bool {
        self.estimate > self.threshold
    }

    #[cold]
    fn pressure(&mut self, bytes: usize) -> Error {
        self.requested = bytes;
        self.exceeded()
    }

    /// The error for a program that exceeds its memory limit.
    #[cold]
    pub(crate) fn exceeded(&self) -> Error {
        Error::new(ErrorKind::MemoryExceeded, format!("the program holds more than {} bytes", self.limit))
    }

    /// Adopts the result of a walk over live memory. Returns whether the program may continue.
    pub(crate) fn settle(&mut self, alive: usize) -> bool {
        let requested = std::mem::take(&mut self.requested);
        self.estimate = alive;
        self.threshold = self.limit.max(alive.saturating_add(self.limit / 4));
        // An allocation that is refused again right after a walk will always be refused.
        let stuck = requested > 0 && self.fuel_at_walk.saturating_sub(self.fuel_left()) < 64;
        self.fuel_at_walk = self.fuel_left();
        !stuck && alive.saturating_add(requested) <= self.limit
    }

    /// Returns whether an allocation was refused since the last walk.
    pub(crate) fn was_refused(&self) -> bool {
        self.requested > 0
    }

    /// Returns the limit of live memory.
    pub(crate) fn limit(&self) -> usize {
        self.limit
    }
}

/// The error for a program that its host has stopped.
#[cold]
pub(super) fn stopped() -> Error {
    Error::new(ErrorKind::Stopped, "the program was stopped from outside")
}
