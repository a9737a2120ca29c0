//! What a collection remembers about its contents: how deep they are nested, and whether a lazy cell may be among them.
//!
//! Both are upper bounds kept when a collection is built, so that asking is free. Depth is what makes recursion over
//! values safe; the lazy flag is what lets `=` or `str` skip the search for cells that have yet to be realised.

use super::Value;

/// The bounds kept in each collection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    depth: u32,
    lazy: bool,
}

impl Shape {
    /// The shape of a collection without contents.
    pub const EMPTY: Shape = Shape { depth: 1, lazy: false };

    /// How many collections a path from here to the innermost value crosses, this one included.
    pub fn depth(self) -> u32 {
        self.depth
    }

    /// Whether something inside may be a lazy cell.
    pub fn may_hold_lazy(self) -> bool {
        self.lazy
    }

    /// The shape of this collection with one more value in it.
    #[must_use]
    pub(crate) fn with(self, inside: &Value) -> Shape {
        match inside {
            Value::Nil
            | Value::Boolean(_)
            | Value::Integer(_)
            | Value::Float(_)
            | Value::Character(_)
            | Value::String(_)
            | Value::Keyword(_) => self,
            other => Shape {
                depth: self.depth.max(other.depth().saturating_add(1)),
                lazy: self.lazy || other.may_hold_lazy(),
            },
        }
    }

    /// The shape of a chain: a first value and a rest that is no deeper for being longer.
    #[must_use]
    pub(crate) fn chained(self, rest: &Value) -> Shape {
        Shape { depth: self.depth.max(rest.depth()), lazy: self.lazy || rest.may_hold_lazy() }
    }

    /// The shape of a collection of these values.
    pub(crate) fn of<'a>(items: impl IntoIterator<Item = &'a Value>) -> Shape {
        items.into_iter().fold(Shape::EMPTY, Shape::with)
    }

    /// Whether taking `removed` out may make the collection shallower, so that a new bound is worth a scan. Shallow
    /// collections are never scanned: their bound costs nobody anything.
    pub(crate) fn depends_on(self, removed: &Value) -> bool {
        self.depth > 8 && removed.depth().saturating_add(1) >= self.depth
    }

    /// The shape of a lazy cell, about whose contents nothing is known.
    pub(crate) const LAZY: Shape = Shape { depth: 1, lazy: true };
}
