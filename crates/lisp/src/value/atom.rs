//! Atoms: references to cells of the memory.
//!
//! An atom does not hold its value. The value is in a numbered cell that belongs to the memory. So an atom
//! may contain itself without a leak, and a program that fails rolls back its atoms by dropping the cells.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::Value;

/// The first item of the cell of a delay. No program can write this keyword.
pub(crate) const DELAY: &str = "\0delay";

/// An atom. Clones are the same atom.
#[derive(Clone)]
pub struct AtomRef(Arc<Identity>);

struct Identity {
    number: u64,
    /// A delay is an atom whose cell holds its function or its value.
    is_delay: AtomicBool,
}

impl AtomRef {
    pub(crate) fn new(number: u64) -> Self {
        Self(Arc::new(Identity { number, is_delay: AtomicBool::new(false) }))
    }

    /// Returns the number of its cell.
    pub fn number(&self) -> u64 {
        self.0.number
    }

    /// Returns whether it is a `delay`.
    pub fn is_delay(&self) -> bool {
        self.0.is_delay.load(Ordering::Relaxed)
    }

    /// Marks it as a `delay` if this value, which its cell receives, is that of one.
    pub(crate) fn note_cell(&self, value: &Value) {
        if let Value::Vector(cell) = value
            && let Some(Value::Keyword(name)) = cell.get(0)
            && name.full() == DELAY
        {
            self.0.is_delay.store(true, Ordering::Relaxed);
        }
    }

    /// Returns the number of handles. The table of cells has one, so a count of one means that the atom is
    /// unreachable.
    pub(crate) fn handles(&self) -> usize {
        Arc::strong_count(&self.0)
    }
}

impl fmt::Debug for AtomRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#<atom {}>", self.number())
    }
}
