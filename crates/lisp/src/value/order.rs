//! The total order over all values, which maps and sets use for their contents.
//!
//! nil, booleans, numbers (by value; an integer before a ratio before a double of the same value; NaN last),
//! characters, strings, keywords, symbols, sequences of every kind (item by item, then the shorter first),
//! maps (entry by entry), sets, dates, regular expressions, vars, atoms, exceptions, functions by creation.
//!
//! Lazy sequences are compared by their realised part; code that adds a value to a map realises it first.

use std::cmp::Ordering;
use std::sync::Arc;

use super::{Cursor, CursorStep, Shape, Value, number};
use crate::effort::{ITEM, touch, touch_items};

impl Value {
    fn rank(&self) -> u8 {
        match self {
            Value::Nil => 0,
            Value::Boolean(_) => 1,
            Value::Integer(_) | Value::BigInteger(_) | Value::Ratio(_) | Value::Float(_) => 2,
            Value::Character(_) => 3,
            Value::String(_) => 4,
            Value::Keyword(_) => 5,
            Value::Symbol(_) => 6,
            Value::List(_) | Value::Sequence(_) | Value::Lazy(_) | Value::Vector(_) => 7,
            Value::Map(_) => 8,
            Value::Set(_) => 9,
            Value::Temporal(_) => 10,
            Value::Regex(_) => 11,
            Value::Var(_) => 12,
            Value::Atom(_) => 13,
            Value::Exception(_) => 14,
            Value::Reduced(_) => 15,
            Value::Native(_) => 16,
            Value::Tool(_) => 17,
            Value::Closure(_) => 18,
        }
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Value {}

impl PartialOrd for Value {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Value {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Value::Keyword(a), Value::Keyword(b)) => a.cmp(b),
            (Value::String(a), Value::String(b)) => a.order(b),
            (Value::Integer(a), Value::Integer(b)) => a.cmp(b),
            (Value::Nil, Value::Nil) => Ordering::Equal,
            (Value::Boolean(a), Value::Boolean(b)) => a.cmp(b),
            (Value::Character(a), Value::Character(b)) => a.cmp(b),
            (Value::Symbol(a), Value::Symbol(b))
            | (Value::Tool(a), Value::Tool(b))
            | (Value::Var(a), Value::Var(b)) => a.cmp(b),
            (Value::Map(a), Value::Map(b)) => {
                if a.address() == b.address() {
                    return same(a.shape());
                }
                if touch_items(2 * a.len().min(b.len())) {
                    return Ordering::Equal;
                }
                a.iter_by_key().cmp(b.iter_by_key())
            }
            (Value::Set(a), Value::Set(b)) => {
                if a.address() == b.address() {
                    return same(a.shape());
                }
                if touch_items(a.len().min(b.len())) {
                    return Ordering::Equal;
                }
                a.iter_by_value().cmp(b.iter_by_value())
            }
            (Value::Temporal(a), Value::Temporal(b)) => a.cmp(b),
            (Value::Regex(a), Value::Regex(b)) => a.source.cmp(&b.source),
            (Value::Atom(a), Value::Atom(b)) => a.number().cmp(&b.number()),
            (Value::Exception(a), Value::Exception(b)) => {
                if Arc::ptr_eq(a, b) {
                    return Ordering::Equal;
                }
                let key =
                    |e: &super::Exception| (e.class(), e.message().map(|text| text.as_str().to_owned()));
                key(a)
                    .cmp(&key(b))
                    .then_with(|| a.data().cmp(b.data()))
                    .then_with(|| a.cause().cmp(b.cause()))
            }
            (Value::Reduced(a), Value::Reduced(b)) => a.cmp(b),
            (Value::Native(a), Value::Native(b)) => a.name.cmp(b.name),
            (Value::Closure(a), Value::Closure(b)) => a.stamp().cmp(&b.stamp()),
            (a, b) => match (a.rank(), b.rank()) {
                (2, 2) => number::total_order(a, b),
                (7, 7) => order_of_sequences(a, b),
                (left, right) => left.cmp(&right),
            },
        }
    }
}

/// Compares a collection with itself. It is charged as if it were two: fuel does not depend on sharing.
fn same(shape: Shape) -> Ordering {
    touch_items(usize::try_from(shape.weight()).unwrap_or(usize::MAX));
    Ordering::Equal
}

fn order_of_sequences(a: &Value, b: &Value) -> Ordering {
    if let (Value::Vector(a), Value::Vector(b)) = (a, b) {
        if a.address() == b.address() {
            return same(a.shape());
        }
        if touch_items(a.len().min(b.len())) {
            return Ordering::Equal;
        }
        return a.iter().cmp(b.iter());
    }
    let (mut left, mut right) =
        (Cursor::new(a).unwrap_or(Cursor::End), Cursor::new(b).unwrap_or(Cursor::End));
    loop {
        match (left.next(), right.next()) {
            (CursorStep::Item(_), CursorStep::Item(_)) if touch(ITEM) => return Ordering::Equal,
            (CursorStep::Item(a), CursorStep::Item(b)) => match a.cmp(&b) {
                Ordering::Equal => {}
                other => return other,
            },
            (CursorStep::Item(_), _) => return Ordering::Greater,
            (_, CursorStep::Item(_)) => return Ordering::Less,
            _ => return Ordering::Equal,
        }
    }
}
