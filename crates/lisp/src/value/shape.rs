//! Bounds that a collection stores about its contents: their nesting depth, their number, and the presence of
//! lazy cells.
//!
//! All are upper bounds computed when a collection is built, so reading them is free. The depth makes
//! recursion over values safe; the weight is the cost of comparing or printing, known in advance, even if a
//! few shared parts unfold into billions; the lazy flag lets `=` or `str` skip the search for cells to
//! realise.

use super::Value;

/// The bounds stored in each collection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Shape {
    weight: u64,
    depth: u32,
    lazy: bool,
}

/// The weight at which counting stops. A value of this weight cannot be walked.
const HEAVIEST: u64 = 1 << 48;

impl Shape {
    /// The shape of a collection without contents.
    pub(crate) const EMPTY: Shape = Shape { weight: 1, depth: 1, lazy: false };

    /// The shape of a lazy cell, whose contents are unknown.
    pub(crate) const LAZY: Shape = Shape { weight: 1, depth: 1, lazy: true };

    /// Returns the shape of a sequence of `count` plain values that it does not hold.
    pub(crate) fn unrealised(count: u64) -> Shape {
        Shape { weight: count.clamp(1, HEAVIEST), depth: 1, lazy: true }
    }

    /// Returns the number of collections on the longest path to an innermost value, including this one.
    pub(crate) fn depth(self) -> u32 {
        self.depth
    }

    /// Returns the number of values inside, each counted as often as it is reached.
    pub(crate) fn weight(self) -> u64 {
        self.weight
    }

    /// Returns whether the contents may include a lazy cell.
    pub(crate) fn may_hold_lazy(self) -> bool {
        self.lazy
    }

    /// Returns the shape of this collection with one more value.
    #[must_use]
    #[inline]
    pub(crate) fn with(self, inside: &Value) -> Shape {
        match inside {
            Value::Nil
            | Value::Boolean(_)
            | Value::Integer(_)
            | Value::Float(_)
            | Value::Character(_)
            | Value::String(_)
            | Value::Keyword(_) => Shape { weight: (self.weight + 1).min(HEAVIEST), ..self },
            other => {
                let inner = other.shape();
                Shape {
                    weight: (self.weight + inner.weight).min(HEAVIEST),
                    depth: self.depth.max(inner.depth.saturating_add(1)),
                    lazy: self.lazy || inner.lazy,
                }
            }
        }
    }

    /// Returns the shape of a chain: a first value and a rest. A longer chain is not deeper.
    #[must_use]
    pub(crate) fn chained(self, rest: &Value) -> Shape {
        let inner = rest.shape();
        Shape {
            weight: (self.weight + inner.weight).min(HEAVIEST),
            depth: self.depth.max(inner.depth),
            lazy: self.lazy || inner.lazy,
        }
    }

    /// Returns the shape of a collection of these values.
    pub(crate) fn of<'a>(items: impl IntoIterator<Item = &'a Value>) -> Shape {
        items.into_iter().fold(Shape::EMPTY, Shape::with)
    }

    /// Returns the shape without `removed`. The depth stays a bound.
    #[must_use]
    pub(crate) fn without(self, removed: &Value) -> Shape {
        // Once counting has stopped, the remaining weight is unknown.
        if self.weight >= HEAVIEST {
            return self;
        }
        Shape { weight: self.weight.saturating_sub(removed.shape().weight).max(1), ..self }
    }

    /// Returns whether removing `removed` may reduce the depth, so that a scan for a new bound is worthwhile.
    /// Shallow collections are never scanned: their bound costs nothing.
    pub(crate) fn depends_on(self, removed: &Value) -> bool {
        self.depth > 8 && removed.depth().saturating_add(1) >= self.depth
    }
}

impl Value {
    /// Returns depth, weight and laziness of a value; a scalar has depth 0 and weight 1.
    pub(crate) fn shape(&self) -> Shape {
        match self {
            Value::List(list) => list.shape(),
            Value::Sequence(sequence) => sequence.shape(),
            Value::Lazy(cell) => cell.shape(),
            Value::Vector(vector) => vector.shape(),
            Value::Map(map) => map.shape(),
            Value::Set(set) => set.shape(),
            Value::Closure(closure) => closure.shape(),
            Value::Exception(exception) => exception.shape(),
            Value::Reduced(inner) => {
                let shape = inner.shape();
                Shape { depth: shape.depth.saturating_add(1), ..shape }
            }
            Value::String(text) => Shape { weight: 1 + text.len() as u64 / 64, depth: 0, lazy: false },
            Value::BigInteger(value) => Shape { weight: 1 + value.bits() / 64, depth: 0, lazy: false },
            _ => Shape { weight: 1, depth: 0, lazy: false },
        }
    }
}
