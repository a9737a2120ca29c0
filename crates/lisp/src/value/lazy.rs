//! Lazy cells: sequences whose contents are computed on first use.
//!
//! A cell is pending, then being realised by a frame of the machine, then realised for good. Only the machine
//! realises cells; all other code only reads realised contents.
//!
//! Only a cell can come to contain itself: its function may read a definition that the cell is part of. The
//! machine therefore tracks the cells whose function might, and empties them at the end of the program.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::reclaim::reclaim;
use super::{Cursor, Shape, Value};

/// A lazy sequence: a cell that is or will become a sequence.
pub struct LazyCell {
    state: Mutex<LazyState>,
    /// The fiber that created it: a branch of `pmap` may not run the effects of a cell from outside.
    creator: u32,
}

enum LazyState {
    Pending(Box<Thunk>),
    /// Being realised, or emptied.
    Taken,
    Realised(Value),
}

/// The computation of a cell's contents. Each variant is run by the frame of the same name.
pub(crate) enum Thunk {
    /// Calls a function of no arguments, which returns a sequence.
    Call(Value),
    /// Calls a function with each item of one sequence.
    Each { each: Each, function: Value, source: Cursor },
    /// Applies a function to the items of several sequences, until one of them ends.
    MapMany { function: Value, sources: Vec<Cursor> },
    /// Joins sequences: the rest of one, then those of a source.
    Concat { current: Cursor, sources: Cursor },
    /// The first items.
    Take { count: u64, source: Cursor },
    /// A value, then the function applied to it, and so on.
    Iterate { function: Value, value: Value },
    /// One value repeated `count` times; `u64::MAX` means without end.
    Repeat { value: Value, count: u64 },
    /// The items of a collection, repeated without end.
    Cycle { all: Value, source: Cursor },
}

/// What becomes of the items of a sequence and of the results of the function.
#[derive(Clone, Copy)]
pub(crate) enum Each {
    /// The results.
    Map,
    /// The results of the index and the item. The number is the next index.
    MapIndexed(i64),
    /// The items for which the truth of the result is this.
    Filter(bool),
    /// The results that are not `nil`.
    Keep,
    /// The items up to the first for which the result is not true.
    TakeWhile,
}

impl LazyCell {
    /// The size of a cell in bytes, with its thunk.
    pub(crate) const BYTES: usize = 160;

    pub(crate) fn new(thunk: Thunk, creator: u32) -> Arc<Self> {
        Arc::new(Self { state: Mutex::new(LazyState::Pending(Box::new(thunk))), creator })
    }

    fn state(&self) -> MutexGuard<'_, LazyState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the contents: `nil`, a list or a sequence, never another lazy cell. `None` while the cell is
    /// pending.
    pub fn realised(&self) -> Option<Value> {
        match &*self.state() {
            LazyState::Realised(value) => Some(value.clone()),
            _ => None,
        }
    }

    /// Returns whether the cell is realised.
    pub fn is_realised(&self) -> bool {
        matches!(&*self.state(), LazyState::Realised(_))
    }

    /// Takes the thunk out to run it. `None` if it is already taken: then the cell depends on itself.
    pub(crate) fn take_thunk(&self) -> Option<Box<Thunk>> {
        let mut state = self.state();
        match std::mem::replace(&mut *state, LazyState::Taken) {
            LazyState::Pending(thunk) => Some(thunk),
            other => {
                *state = other;
                None
            }
        }
    }

    /// Restores a thunk whose run has failed.
    pub(crate) fn restore_thunk(&self, thunk: Box<Thunk>) {
        *self.state() = LazyState::Pending(thunk);
    }

    /// Visits the thunk, for walks over live memory.
    pub(crate) fn inspect(&self, visit: &mut dyn FnMut(&Thunk)) {
        if let LazyState::Pending(thunk) = &*self.state() {
            visit(thunk);
        }
    }

    /// Sets the contents of the cell.
    pub(crate) fn realise(&self, value: Value) {
        debug_assert!(!matches!(value, Value::Lazy(_)));
        *self.state() = LazyState::Realised(value);
    }

    /// Clears the cell. Only for cells that will not be read again.
    pub(crate) fn empty(&self) {
        let state = std::mem::replace(&mut *self.state(), LazyState::Taken);
        state.release();
    }

    pub(crate) fn creator(&self) -> u32 {
        self.creator
    }

    pub(crate) fn shape(&self) -> Shape {
        Shape::LAZY
    }
}

impl LazyState {
    /// Moves the contents to the queue of values to drop.
    fn release(self) {
        match self {
            LazyState::Pending(thunk) => thunk.release(),
            LazyState::Realised(value) => reclaim(value),
            LazyState::Taken => {}
        }
    }
}

impl Drop for LazyCell {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(state, LazyState::Taken).release();
    }
}

impl Thunk {
    /// Moves the contents of the thunk to the queue, because thunks refer to cells that refer to thunks.
    fn release(self) {
        let mut held = Vec::new();
        self.each(&mut |value| held.push(value.clone()));
        // Its values have another owner now, so that this does not drop them by recursion.
        drop(self);
        held.into_iter().for_each(reclaim);
    }

    /// Returns the function that the thunk calls, if any.
    pub(crate) fn function(&self) -> Option<&Value> {
        match self {
            Thunk::Call(function)
            | Thunk::Each { function, .. }
            | Thunk::MapMany { function, .. }
            | Thunk::Iterate { function, .. } => Some(function),
            Thunk::Concat { .. } | Thunk::Take { .. } | Thunk::Repeat { .. } | Thunk::Cycle { .. } => None,
        }
    }

    /// Visits every value that the thunk refers to.
    pub(crate) fn each(&self, visit: &mut dyn FnMut(&Value)) {
        match self {
            Thunk::Call(function) => visit(function),
            Thunk::Each { function, source, .. } => {
                visit(function);
                source.each(visit);
            }
            Thunk::MapMany { function, sources } => {
                visit(function);
                sources.iter().for_each(|source| source.each(visit));
            }
            Thunk::Concat { current, sources } => {
                current.each(visit);
                sources.each(visit);
            }
            Thunk::Take { source, .. } => source.each(visit),
            Thunk::Iterate { function, value } => {
                visit(function);
                visit(value);
            }
            Thunk::Repeat { value, .. } => visit(value),
            Thunk::Cycle { all, source } => {
                visit(all);
                source.each(visit);
            }
        }
    }
}
