//! Sequences that are views: the rest of a vector, a realised chunk with a rest, a range of integers.
//!
//! A sequence is never empty: without items it would be `nil` or the empty list.

use std::sync::Arc;

use super::reclaim::reclaim;
use super::{Shape, Value, Vector};

/// A sequence over items that are already realised.
#[derive(Clone)]
pub struct Sequence(Arc<View>);

/// The source of a sequence.
pub(crate) enum View {
    /// The items of a vector from an index on, then another sequence.
    Items { items: Vector, from: usize, rest: Value, shape: Shape },
    /// `start`, `start + step`, ...: `count` integers, none of which overflows. A count of `u64::MAX` means
    /// without end.
    Range { start: i64, step: i64, count: u64 },
}

impl Sequence {
    /// Returns the items of a vector from an index on, or `None` if there are none.
    pub fn of(items: Vector, from: usize) -> Option<Sequence> {
        Self::chunk(items, from, Value::Nil)
    }

    /// Returns items as a sequence: the empty list if there are none.
    pub fn realised(items: Vec<Value>) -> Value {
        Self::of(Vector::from(items), 0).map_or(Value::List(super::List::EMPTY), Value::Sequence)
    }

    /// Returns the items of a vector from an index on and then `rest`, or `None` if there are no items.
    pub(crate) fn chunk(items: Vector, from: usize, rest: Value) -> Option<Sequence> {
        if from >= items.len() {
            return None;
        }
        let shape = items.shape().chained(&rest);
        Some(Self(Arc::new(View::Items { items, from, rest, shape })))
    }

    /// Returns a range of integers. `count` must be positive and the last integer must not overflow.
    pub(crate) fn range(start: i64, step: i64, count: u64) -> Option<Sequence> {
        (count > 0).then(|| Self(Arc::new(View::Range { start, step, count })))
    }

    pub(crate) fn view(&self) -> &View {
        &self.0
    }

    /// Returns the first item.
    pub fn first(&self) -> Value {
        match &*self.0 {
            View::Items { items, from, .. } => items.get(*from).cloned().unwrap_or_default(),
            View::Range { start, .. } => Value::Integer(*start),
        }
    }

    /// Returns the items after the first: a sequence, a lazy sequence or `nil`.
    pub fn rest(&self) -> Value {
        match &*self.0 {
            View::Items { items, from, rest, .. } => match Self::chunk(items.clone(), from + 1, rest.clone())
            {
                Some(next) => Value::Sequence(next),
                None => rest.clone(),
            },
            View::Range { start, step, count } => {
                let left = if *count == u64::MAX { u64::MAX } else { count - 1 };
                Self::range(start.saturating_add(*step), *step, left).map_or(Value::Nil, Value::Sequence)
            }
        }
    }

    /// Returns the length, if the view is finite and has no rest.
    pub fn count(&self) -> Option<usize> {
        match &*self.0 {
            View::Items { items, from, rest: Value::Nil, .. } => Some(items.len() - from),
            View::Items { .. } => None,
            View::Range { count: u64::MAX, .. } => None,
            View::Range { count, .. } => usize::try_from(*count).ok(),
        }
    }

    pub(crate) fn shape(&self) -> Shape {
        match &*self.0 {
            View::Items { shape, .. } => *shape,
            // A range needs no realisation, but it may be longer than any realised sequence.
            View::Range { count, .. } => Shape::unrealised(*count),
        }
    }

    /// Returns whether this is a finite range of integers.
    pub(crate) fn is_finite_range(&self) -> bool {
        matches!(&*self.0, View::Range { count, .. } if *count != u64::MAX)
    }

    pub(crate) fn address(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }

    /// The size of a view in bytes, without its vector.
    pub(crate) const BYTES: usize = 80;
}

impl Drop for View {
    fn drop(&mut self) {
        if let View::Items { rest, .. } = self {
            reclaim(std::mem::take(rest));
        }
    }
}

impl Sequence {
    /// Visits every value that the view refers to.
    pub(crate) fn each(&self, visit: &mut dyn FnMut(&Value)) {
        if let View::Items { items, rest, .. } = &*self.0 {
            visit(&Value::Vector(items.clone()));
            visit(rest);
        }
    }
}
