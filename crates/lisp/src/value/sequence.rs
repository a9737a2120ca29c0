//! Sequences that are views: the rest of a vector, a realised chunk with a rest, a range of integers.
//!
//! A sequence is never empty: what has no items is `nil` or the empty list.

use std::sync::Arc;

use super::reclaim::reclaim;
use super::{Shape, Value, Vector};

/// A sequence over items that lie ready.
#[derive(Clone)]
pub struct Sequence(Arc<View>);

/// What a sequence looks at.
pub(crate) enum View {
    /// The items of a vector from an index on, then another sequence.
    Items { items: Vector, from: usize, rest: Value, shape: Shape },
    /// `start`, `start + step`, ...: `count` integers, none of which overflows. A count of `u64::MAX` never ends.
    Range { start: i64, step: i64, count: u64 },
}

impl Sequence {
    /// The items of a vector from an index on, or nothing if there are none.
    pub fn of(items: Vector, from: usize) -> Option<Sequence> {
        Self::chunk(items, from, Value::Nil)
    }

    /// The items of a vector as a sequence: the empty list if there are none.
    pub fn realised(items: Vec<Value>) -> Value {
        Self::of(Vector::from(items), 0).map_or(Value::List(super::List::EMPTY), Value::Sequence)
    }

    /// The items of a vector from an index on and then `rest`, or nothing if there are no items.
    pub(crate) fn chunk(items: Vector, from: usize, rest: Value) -> Option<Sequence> {
        if from >= items.len() {
            return None;
        }
        let shape = items.shape().chained(&rest);
        Some(Self(Arc::new(View::Items { items, from, rest, shape })))
    }

    /// A range of integers. `count` must be positive and the last integer must not overflow.
    pub(crate) fn range(start: i64, step: i64, count: u64) -> Option<Sequence> {
        (count > 0).then(|| Self(Arc::new(View::Range { start, step, count })))
    }

    pub(crate) fn view(&self) -> &View {
        &self.0
    }

    /// The first item.
    pub fn first(&self) -> Value {
        match &*self.0 {
            View::Items { items, from, .. } => items.get(*from).cloned().unwrap_or_default(),
            View::Range { start, .. } => Value::Integer(*start),
        }
    }

    /// What follows the first item: a sequence, a lazy sequence or `nil`.
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

    /// The length, if nothing follows the view and it ends.
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
            // A range lies ready, but it may be longer than anything that may be realised.
            View::Range { count, .. } => Shape::unrealised(*count),
        }
    }

    /// Whether this is a range of integers that ends.
    pub(crate) fn is_finite_range(&self) -> bool {
        matches!(&*self.0, View::Range { count, .. } if *count != u64::MAX)
    }

    pub(crate) fn address(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }

    /// The bytes a view takes, without the vector it looks at.
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
    /// Every value the view holds.
    pub(crate) fn each(&self, look: &mut dyn FnMut(&Value)) {
        if let View::Items { items, rest, .. } = &*self.0 {
            look(&Value::Vector(items.clone()));
            look(rest);
        }
    }
}
