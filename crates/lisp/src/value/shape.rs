//! What a collection remembers about its contents: how deep they are nested, how many there are, and whether a lazy
//! cell may be among them.
//!
//! All are upper bounds kept when a collection is built, so that asking is free. Depth is what makes recursion over
//! values safe; the weight is what comparing or printing costs, known before it is begun, even where a few shared
//! pieces unfold into billions; the lazy flag is what lets `=` or `str` skip the search for cells to realise.

use super::Value;

/// The bounds kept in each collection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Shape {
    weight: u64,
    depth: u32,
    lazy: bool,
}

/// The weight at which counting stops. Nothing of this weight can be walked.
const HEAVIEST: u64 = 1 << 48;

impl Shape {
    /// The shape of a collection without contents.
    pub(crate) const EMPTY: Shape = Shape { weight: 1, depth: 1, lazy: false };

    /// The shape of a lazy cell, about whose contents nothing is known.
    pub(crate) const LAZY: Shape = Shape { weight: 1, depth: 1, lazy: true };

    /// The shape of a sequence of so many plain values that does not hold them.
    pub(crate) fn unrealised(count: u64) -> Shape {
        Shape { weight: count.clamp(1, HEAVIEST), depth: 1, lazy: true }
    }

    /// How many collections a path from here to the innermost value crosses, this one included.
    pub(crate) fn depth(self) -> u32 {
        self.depth
    }

    /// How many values there are inside, each counted as often as it is reached.
    pub(crate) fn weight(self) -> u64 {
        self.weight
    }

    /// Whether something inside may be a lazy cell.
    pub(crate) fn may_hold_lazy(self) -> bool {
        self.lazy
    }

    /// The shape of this collection with one more value in it.
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

    /// The shape of a chain: a first value and a rest that is no deeper for being longer.
    #[must_use]
    pub(crate) fn chained(self, rest: &Value) -> Shape {
        let inner = rest.shape();
        Shape {
            weight: (self.weight + inner.weight).min(HEAVIEST),
            depth: self.depth.max(inner.depth),
            lazy: self.lazy || inner.lazy,
        }
    }

    /// The shape of a collection of these values.
    pub(crate) fn of<'a>(items: impl IntoIterator<Item = &'a Value>) -> Shape {
        items.into_iter().fold(Shape::EMPTY, Shape::with)
    }

    /// The shape after `removed` has been taken out. The depth stays a bound.
    #[must_use]
    pub(crate) fn without(self, removed: &Value) -> Shape {
        // Once counting has stopped nobody knows what is left.
        if self.weight >= HEAVIEST {
            return self;
        }
        Shape { weight: self.weight.saturating_sub(removed.shape().weight).max(1), ..self }
    }

    /// Whether taking `removed` out may make the collection shallower, so that a new bound is worth a scan. Shallow
    /// collections are never scanned: their bound costs nobody anything.
    pub(crate) fn depends_on(self, removed: &Value) -> bool {
        self.depth > 8 && removed.depth().saturating_add(1) >= self.depth
    }
}

impl Value {
    /// Depth, weight and laziness of a value; what is no collection has depth 0 and weight 1.
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
