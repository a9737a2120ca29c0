//! Lazy cells: sequences whose contents are computed when somebody looks.
//!
//! A cell is pending, then being realised by a frame of the machine, then realised for good. Only the machine
//! realises cells; everybody else can merely ask what is there already.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::reclaim::reclaim;
use super::{Cursor, Shape, Value};

/// A lazy sequence: a cell that is or will become a sequence.
pub struct LazyCell {
    realised: OnceLock<Value>,
    pending: Mutex<Option<Box<Thunk>>>,
    /// The fiber that made it: a branch of `pmap` may not run the effects of a cell from outside.
    creator: u32,
}

/// How a cell gets its contents. Each of these is run by the frame of the same name.
pub(crate) enum Thunk {
    /// Calls a function of no arguments, which gives a sequence.
    Call(Value),
    /// Applies a function to the items of one sequence.
    Map { function: Value, source: Cursor },
    /// Applies a function to the items of several sequences, until one of them ends.
    MapMany { function: Value, sources: Vec<Cursor> },
    /// Applies a function to the index and the item.
    MapIndexed { function: Value, index: i64, source: Cursor },
    /// Keeps the items for which the predicate gives what is `wanted`.
    Filter { predicate: Value, wanted: bool, source: Cursor },
    /// Keeps the results that are not `nil`.
    Keep { function: Value, source: Cursor },
    /// Joins sequences: the rest of one, then those that a source gives.
    Concat { current: Cursor, sources: Cursor },
    /// The first items.
    Take { count: u64, source: Cursor },
    /// The items up to the first for which the predicate does not hold.
    TakeWhile { predicate: Value, source: Cursor },
    /// A value, then the function applied to it, and so on.
    Iterate { function: Value, value: Value },
    /// One value over and over, `u64::MAX` times meaning for ever.
    Repeat { value: Value, count: u64 },
    /// The items of a collection over and over.
    Cycle { all: Value, source: Cursor },
}

impl LazyCell {
    /// The bytes a cell takes, with its thunk.
    pub(crate) const BYTES: usize = 160;

    pub(crate) fn new(thunk: Thunk, creator: u32) -> Arc<Self> {
        Arc::new(Self { realised: OnceLock::new(), pending: Mutex::new(Some(Box::new(thunk))), creator })
    }

    /// What the cell has become: `nil`, a list or a sequence, never another lazy cell. Nothing while it is pending.
    pub fn realised(&self) -> Option<&Value> {
        self.realised.get()
    }

    /// Takes the thunk out, to run it. Nothing if it is taken already: then the cell depends on itself.
    pub(crate) fn take_thunk(&self) -> Option<Box<Thunk>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Puts a thunk back whose run has failed.
    pub(crate) fn restore_thunk(&self, thunk: Box<Thunk>) {
        *self.pending.lock().unwrap_or_else(PoisonError::into_inner) = Some(thunk);
    }

    /// Looks at the thunk, for walks over everything that is alive.
    pub(crate) fn inspect(&self, look: &mut dyn FnMut(&Thunk)) {
        if let Some(thunk) = &*self.pending.lock().unwrap_or_else(PoisonError::into_inner) {
            look(thunk);
        }
    }

    /// Sets what the cell has become.
    pub(crate) fn realise(&self, value: Value) {
        debug_assert!(!matches!(value, Value::Lazy(_)));
        // A cell that is realised twice keeps its first contents: both are the same.
        let _ = self.realised.set(value);
    }

    pub(crate) fn creator(&self) -> u32 {
        self.creator
    }

    pub(crate) fn shape(&self) -> Shape {
        Shape::LAZY
    }
}

impl Drop for LazyCell {
    fn drop(&mut self) {
        if let Some(value) = self.realised.take() {
            reclaim(value);
        }
        let pending = self.pending.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(thunk) = pending.take() {
            thunk.release();
        }
    }
}

impl Thunk {
    /// Hands everything the thunk holds to the queue, because thunks hold cells that hold thunks.
    fn release(self) {
        match self {
            Thunk::Call(function) => reclaim(function),
            Thunk::Map { function, source }
            | Thunk::MapIndexed { function, source, .. }
            | Thunk::Filter { predicate: function, source, .. }
            | Thunk::Keep { function, source }
            | Thunk::TakeWhile { predicate: function, source } => {
                reclaim(function);
                reclaim(source.into_value());
            }
            Thunk::MapMany { function, sources } => {
                reclaim(function);
                sources.into_iter().for_each(|source| reclaim(source.into_value()));
            }
            Thunk::Concat { current, sources } => {
                reclaim(current.into_value());
                reclaim(sources.into_value());
            }
            Thunk::Take { source, .. } => reclaim(source.into_value()),
            Thunk::Iterate { function, value } => {
                reclaim(function);
                reclaim(value);
            }
            Thunk::Repeat { value, .. } => reclaim(value),
            Thunk::Cycle { all, source } => {
                reclaim(all);
                reclaim(source.into_value());
            }
        }
    }

    /// Every value the thunk holds.
    pub(crate) fn each(&self, look: &mut dyn FnMut(&Value)) {
        match self {
            Thunk::Call(function) => look(function),
            Thunk::Map { function, source }
            | Thunk::MapIndexed { function, source, .. }
            | Thunk::Filter { predicate: function, source, .. }
            | Thunk::Keep { function, source }
            | Thunk::TakeWhile { predicate: function, source } => {
                look(function);
                source.each(look);
            }
            Thunk::MapMany { function, sources } => {
                look(function);
                sources.iter().for_each(|source| source.each(look));
            }
            Thunk::Concat { current, sources } => {
                current.each(look);
                sources.each(look);
            }
            Thunk::Take { source, .. } => source.each(look),
            Thunk::Iterate { function, value } => {
                look(function);
                look(value);
            }
            Thunk::Repeat { value, .. } => look(value),
            Thunk::Cycle { all, source } => {
                look(all);
                source.each(look);
            }
        }
    }
}
