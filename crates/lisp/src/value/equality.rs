//! Clojure's `=`.
//!
//! Sequences of every kind are equal item by item, numbers only within their kind (`(= 1 1.0)` is false),
//! functions and atoms by identity, and NaN equals nothing. The values must be realised.

use super::{Cursor, CursorStep, Map, Value, number};
use crate::effort::{ITEM, touch, touch_items};

/// Returns whether two values are equal. Both must be realised.
pub fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Keyword(a), Value::Keyword(b)) => a == b,
        (Value::String(a), Value::String(b)) => a == b,
        (Value::Integer(a), Value::Integer(b)) => a == b,
        (Value::Float(a), Value::Float(b)) => a == b,
        (Value::Nil, Value::Nil) => true,
        (Value::Nil, _) | (_, Value::Nil) => false,
        (
            Value::Integer(_) | Value::BigInteger(_) | Value::Ratio(_) | Value::Float(_),
            Value::Integer(_) | Value::BigInteger(_) | Value::Ratio(_) | Value::Float(_),
        ) => number::same_kind_equal(a, b),
        (Value::Vector(a), Value::Vector(b)) => {
            a.len() == b.len() && (touch_items(a.len()) || a.iter().zip(b.iter()).all(|(a, b)| equal(a, b)))
        }
        (
            Value::Vector(_) | Value::List(_) | Value::Sequence(_) | Value::Lazy(_),
            Value::Vector(_) | Value::List(_) | Value::Sequence(_) | Value::Lazy(_),
        ) => equal_sequences(a, b),
        (Value::Map(a), Value::Map(b)) => equal_maps(a, b),
        (Value::Set(a), Value::Set(b)) => {
            a.len() == b.len()
                && (touch_items(searches(a.len()))
                    || a.address() == b.address()
                    || a.iter().all(|item| b.contains(item)))
        }
        (Value::Exception(a), Value::Exception(b)) => std::sync::Arc::ptr_eq(a, b),
        (Value::Regex(a), Value::Regex(b)) => std::sync::Arc::ptr_eq(a, b),
        _ => a == b,
    }
}

/// Returns the number of items that are compared to find each of `length` items in a collection of that
/// length.
fn searches(length: usize) -> usize {
    length.saturating_mul((usize::BITS - length.leading_zeros()) as usize)
}

fn equal_maps(a: &Map, b: &Map) -> bool {
    if a.len() != b.len() {
        return false;
    }
    touch_items(searches(a.len()))
        || a.address() == b.address()
        || a.iter().all(|(key, value)| b.get_exact(key).is_some_and(|other| equal(value, other)))
}

fn equal_sequences(a: &Value, b: &Value) -> bool {
    let (mut left, mut right) =
        (Cursor::new(a).unwrap_or(Cursor::End), Cursor::new(b).unwrap_or(Cursor::End));
    if let (Some(left), Some(right)) = (left.left(), right.left())
        && left != right
    {
        return false;
    }
    loop {
        match (left.next(), right.next()) {
            (CursorStep::Item(a), CursorStep::Item(b)) => {
                if touch(ITEM) {
                    return true;
                }
                if !equal(&a, &b) {
                    return false;
                }
            }
            (CursorStep::End, CursorStep::End) => return true,
            _ => return false,
        }
    }
}

/// Returns whether two values are identical: the same collection in memory, or an equal scalar. It reads no
/// collection.
pub(crate) fn identical(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Vector(a), Value::Vector(b)) => a.address() == b.address() || a.is_empty() && b.is_empty(),
        (Value::Map(a), Value::Map(b)) => a.address() == b.address() || a.is_empty() && b.is_empty(),
        (Value::Set(a), Value::Set(b)) => a.address() == b.address() || a.is_empty() && b.is_empty(),
        (Value::List(a), Value::List(b)) => a.address() == b.address(),
        (Value::Sequence(a), Value::Sequence(b)) => a.address() == b.address(),
        (Value::Lazy(a), Value::Lazy(b)) => std::sync::Arc::ptr_eq(a, b),
        (
            Value::Vector(_)
            | Value::Map(_)
            | Value::Set(_)
            | Value::List(_)
            | Value::Sequence(_)
            | Value::Lazy(_),
            _,
        )
        | (_, Value::Lazy(_)) => false,
        _ => equal(a, b),
    }
}
