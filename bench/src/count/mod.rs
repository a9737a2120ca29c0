//! Counts of what a run does: instructions, system calls, allocations and allocated bytes.
//!
//! Unlike times they hardly depend on the machine and on what else it does. Instructions are those outside of the
//! kernel. Both they and system calls are counted by the kernel, where it can and may; [`explain`] says which of
//! them are missing.

mod allocations;
mod events;

use std::array::from_fn;

/// The owner of the processor time and of the events that are counted.
#[derive(Clone, Copy)]
pub(crate) enum Scope {
    Thread,
    Process,
    /// Child processes that have ended. Only their time is known.
    Children,
}

/// Names of the counts in the lines that are printed.
pub(crate) const NAMES: [&str; 4] = ["instructions", "syscalls", "allocations", "allocated"];

/// Counts in the order of [`NAMES`]; `None` where they are not counted.
#[derive(Clone, Copy, Default)]
pub(crate) struct Counts(pub(crate) [Option<f64>; NAMES.len()]);

impl Counts {
    /// Reads the counters at the beginning of a run.
    pub(crate) fn start(scope: Scope) -> Self {
        let instructions = events::instructions(scope);
        let syscalls = events::syscalls(scope);
        Self::of(scope, instructions, syscalls)
    }

    /// Reads the counters at the end of a run, and returns the difference. The order of the reads is reversed, so that
    /// all that a run seems to do by being counted is one system call.
    pub(crate) fn since_start(self, scope: Scope) -> Self {
        let syscalls = events::syscalls(scope).map(|count| count - 1.0);
        let instructions = events::instructions(scope);
        let end = Self::of(scope, instructions, syscalls);
        self.combine(end, |before, after| (after - before).max(0.0))
    }

    fn of(scope: Scope, instructions: Option<f64>, syscalls: Option<f64>) -> Self {
        let (allocations, bytes) = allocations::counted(scope).unzip();
        Self([instructions, syscalls, allocations, bytes])
    }

    /// Combines each count with that of others, if both are counted.
    pub(crate) fn combine(self, other: Self, with: impl Fn(f64, f64) -> f64) -> Self {
        Self(from_fn(|index| Some(with(self.0[index]?, other.0[index]?))))
    }

    /// Applies a function to each count.
    pub(crate) fn map(self, change: impl Fn(f64) -> f64) -> Self {
        Self(self.0.map(|count| count.map(&change)))
    }
}

/// Starts to count for the whole process, which has no other thread yet.
pub(crate) fn begin() {
    events::begin();
}

/// Says on standard error what is not counted here, and why.
pub(crate) fn explain() {
    for (name, reason) in events::missing() {
        eprintln!("{name} are not counted: {reason}");
    }
}
