//! Clojure's `compare`: the order of `sort`, which refuses values that do not compare.

use std::cmp::Ordering;

use super::{Value, number};
use crate::effort::touch_items;
use crate::error::{Error, ErrorKind};

/// Compares two values: `nil` first, numbers by value, texts, keywords, symbols and characters in their own
/// order, vectors by length and then by item. Other types, and mixed types, are an error.
pub fn compare(a: &Value, b: &Value) -> Result<Ordering, Error> {
    Ok(match (a, b) {
        (Value::Nil, Value::Nil) => Ordering::Equal,
        (Value::Nil, _) => Ordering::Less,
        (_, Value::Nil) => Ordering::Greater,
        (Value::Integer(a), Value::Integer(b)) => a.cmp(b),
        (Value::String(a), Value::String(b)) => a.order(b),
        (Value::Keyword(a), Value::Keyword(b)) => a.cmp(b),
        (Value::Symbol(a), Value::Symbol(b)) => a.cmp(b),
        (Value::Character(a), Value::Character(b)) => a.cmp(b),
        (Value::Boolean(a), Value::Boolean(b)) => a.cmp(b),
        (Value::Temporal(left), Value::Temporal(right))
            if std::mem::discriminant(&**left) == std::mem::discriminant(&**right) =>
        {
            left.cmp(right)
        }
        (Value::Vector(left), Value::Vector(right)) => {
            let by_length = left.len().cmp(&right.len());
            if by_length != Ordering::Equal {
                return Ok(by_length);
            }
            if touch_items(left.len()) {
                return Ok(Ordering::Equal);
            }
            for (a, b) in left.iter().zip(right.iter()) {
                let order = compare(a, b)?;
                if order != Ordering::Equal {
                    return Ok(order);
                }
            }
            Ordering::Equal
        }
        (a, b) if number::is_number(a) && number::is_number(b) => {
            // NaN compares equal to every number, as in Clojure.
            number::numeric_order(a, b).unwrap_or(Ordering::Equal)
        }
        _ => {
            let message = format!("compare: cannot compare {} with {}", a.type_name(), b.type_name());
            return Err(Error::new(ErrorKind::Type, message));
        }
    })
}
