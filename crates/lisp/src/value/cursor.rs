//! Iteration over anything that has items, one at a time, stopping at a pending lazy cell.
//!
//! Every loop of the machine and the library reads collections this way. A cursor refers only to the
//! remaining items, so that the part of a long sequence behind it may be dropped.

use std::sync::Arc;

use super::sequence::View;
use super::{LazyCell, List, Sequence, Value, Vector};
use crate::effort;

/// A position in a collection.
#[derive(Clone)]
pub enum Cursor {
    /// No items are left.
    End,
    /// The items of a vector from an index on, then those of a value.
    Items(Vector, usize, Value),
    /// A range of integers: next, step, and the number of remaining items.
    Range(i64, i64, u64),
    /// A list cell or the empty list.
    List(List),
    /// A lazy cell that has not been read yet.
    Lazy(Arc<LazyCell>),
}

/// The result of a step of a cursor.
pub enum CursorStep {
    /// The next item.
    Item(Value),
    /// There are no more items.
    End,
    /// The next item is inside this cell, which has to be realised first.
    Blocked(Arc<LazyCell>),
}

impl Cursor {
    /// Creates a cursor at the beginning of a collection, a string, a sequence or `nil`. `None` for other
    /// values.
    pub fn new(value: &Value) -> Option<Cursor> {
        Some(match value {
            Value::Nil => Cursor::End,
            Value::Vector(items) => Cursor::Items(items.clone(), 0, Value::Nil),
            Value::List(list) => Cursor::List(list.clone()),
            Value::Sequence(sequence) => Cursor::of_sequence(sequence),
            Value::Lazy(cell) => Cursor::Lazy(cell.clone()),
            Value::Map(map) => Cursor::Items(Vector::from(map.entries()), 0, Value::Nil),
            Value::Set(set) => {
                effort::touch_items(set.len());
                Cursor::Items(Vector::from(set.iter().cloned().collect::<Vec<_>>()), 0, Value::Nil)
            }
            Value::String(text) => {
                effort::touch_items(text.len());
                Cursor::Items(
                    Vector::from(text.chars().map(Value::Character).collect::<Vec<_>>()),
                    0,
                    Value::Nil,
                )
            }
            _ => return None,
        })
    }

    fn of_sequence(sequence: &Sequence) -> Cursor {
        match sequence.view() {
            View::Items { items, from, rest, .. } => Cursor::Items(items.clone(), *from, rest.clone()),
            View::Range { start, step, count } => Cursor::Range(*start, *step, *count),
        }
    }

    /// Returns the next item and advances. A blocked cursor does not advance.
    #[inline]
    #[expect(
        clippy::should_implement_trait,
        reason = "a blocked cursor is not at its end, so it is not an iterator"
    )]
    pub fn next(&mut self) -> CursorStep {
        loop {
            match self {
                Cursor::End => return CursorStep::End,
                Cursor::Items(items, at, rest) => {
                    if let Some(item) = items.get(*at) {
                        *at += 1;
                        return CursorStep::Item(item.clone());
                    }
                    let rest = std::mem::take(rest);
                    *self = Cursor::new(&rest).unwrap_or(Cursor::End);
                }
                Cursor::Range(next, step, left) => {
                    if *left == 0 {
                        return CursorStep::End;
                    }
                    let item = *next;
                    *next = next.saturating_add(*step);
                    if *left != u64::MAX {
                        *left -= 1;
                    }
                    return CursorStep::Item(Value::Integer(item));
                }
                Cursor::List(list) => {
                    let Some(node) = list.node() else { return CursorStep::End };
                    let item = node.first().clone();
                    let rest = node.rest().clone();
                    *self = Cursor::new(&rest).unwrap_or(Cursor::End);
                    return CursorStep::Item(item);
                }
                Cursor::Lazy(cell) => match cell.realised() {
                    None => return CursorStep::Blocked(cell.clone()),
                    Some(value) => *self = Cursor::new(&value).unwrap_or(Cursor::End),
                },
            }
        }
    }

    /// Returns the item after `skipped` others if it is in the vector that the cursor is in.
    #[inline]
    pub(crate) fn peek(&self, skipped: usize) -> Option<&Value> {
        match self {
            Cursor::Items(items, at, _) => items.get(*at + skipped),
            _ => None,
        }
    }

    /// Moves past the next item, which [`Cursor::peek`] has returned.
    #[inline]
    pub(crate) fn advance(&mut self) {
        if let Cursor::Items(_, at, _) = self {
            *at += 1;
        }
    }

    /// Moves past the remaining items of the vector that the cursor is in, and appends them to `items`.
    pub(crate) fn take_block(&mut self, items: &mut Vec<Value>) {
        if let Cursor::Items(vector, at, _) = self {
            items.extend(vector.iter_from(*at).cloned());
            *at = vector.len();
        }
    }

    /// Returns the number of remaining items, if it is known without a walk.
    pub fn left(&self) -> Option<usize> {
        match self {
            Cursor::End => Some(0),
            Cursor::Items(items, at, Value::Nil) => Some(items.len().saturating_sub(*at)),
            Cursor::Range(_, _, u64::MAX) => None,
            Cursor::Range(_, _, left) => usize::try_from(*left).ok(),
            Cursor::List(list) => list.count(),
            _ => None,
        }
    }

    /// Returns the remaining items as a sequence: possibly empty, possibly lazy.
    pub fn into_value(self) -> Value {
        match self {
            Cursor::End => Value::Nil,
            Cursor::Items(items, at, rest) => match Sequence::chunk(items, at, rest.clone()) {
                Some(sequence) => Value::Sequence(sequence),
                None => rest,
            },
            Cursor::Range(next, step, left) => {
                Sequence::range(next, step, left).map_or(Value::Nil, Value::Sequence)
            }
            Cursor::List(list) => Value::List(list),
            Cursor::Lazy(cell) => Value::Lazy(cell),
        }
    }

    pub(crate) fn each(&self, visit: &mut dyn FnMut(&Value)) {
        match self {
            Cursor::End | Cursor::Range(..) => {}
            Cursor::Items(items, _, rest) => {
                visit(&Value::Vector(items.clone()));
                visit(rest);
            }
            Cursor::List(list) => visit(&Value::List(list.clone())),
            Cursor::Lazy(cell) => visit(&Value::Lazy(cell.clone())),
        }
    }
}
