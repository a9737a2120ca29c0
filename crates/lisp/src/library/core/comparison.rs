//! `=`, `<`, `compare` and the predicates on numbers.

use std::cmp::Ordering;

use super::{DEEP, NOT};
use crate::effort::touch_bytes;
use crate::error::{Error, ErrorKind, Result};
use crate::library::{Arity, Native, type_error};
use crate::value::{Value, compare, equal, hash, identical, number};

pub(crate) const NATIVES: &[Native] = &[
    Native::leaf("=", Arity::at_least(1), DEEP, |_, a| Ok(all_equal(a).into())),
    Native::leaf("not=", Arity::at_least(1), DEEP, |_, a| Ok((!all_equal(a)).into())),
    Native::leaf("==", Arity::at_least(1), NOT, |c, a| in_order(c.name, a, Ordering::is_eq)),
    Native::leaf("<", Arity::at_least(1), NOT, |c, a| in_order(c.name, a, Ordering::is_lt)),
    Native::leaf("<=", Arity::at_least(1), NOT, |c, a| in_order(c.name, a, Ordering::is_le)),
    Native::leaf(">", Arity::at_least(1), NOT, |c, a| in_order(c.name, a, Ordering::is_gt)),
    Native::leaf(">=", Arity::at_least(1), NOT, |c, a| in_order(c.name, a, Ordering::is_ge)),
    Native::leaf("compare", Arity::exactly(2), DEEP, |_, a| compare_values(&a[0], &a[1])),
    Native::binary("identical?", |_, a| Ok(identical(&a[0], &a[1]).into())),
    Native::leaf("hash", Arity::exactly(1), DEEP, |_, a| Ok(Value::Integer(i64::from(hash(&a[0]))))),
    Native::unary("zero?", |c, a| sign(c.name, &a[0], |sign| sign == Some(0))),
    Native::unary("pos?", |c, a| sign(c.name, &a[0], |sign| sign == Some(1))),
    Native::unary("neg?", |c, a| sign(c.name, &a[0], |sign| sign == Some(-1))),
    Native::unary("even?", |c, a| parity(c.name, &a[0], true)),
    Native::unary("odd?", |c, a| parity(c.name, &a[0], false)),
    Native::unary("not", |_, a| Ok((!a[0].is_truthy()).into())),
    Native::unary("boolean", |_, a| Ok(a[0].is_truthy().into())),
    Native::unary("NaN?", |c, a| float(c.name, &a[0], f64::is_nan)),
    Native::unary("infinite?", |c, a| float(c.name, &a[0], f64::is_infinite)),
];

fn all_equal(arguments: &[Value]) -> bool {
    arguments.windows(2).all(|pair| equal(&pair[0], &pair[1]))
}

fn in_order(name: &str, arguments: &[Value], holds: fn(Ordering) -> bool) -> Result<Value> {
    // Clojure accepts any single argument here.
    for pair in arguments.windows(2) {
        if !number::compare_numbers(name, &pair[0], &pair[1])?.is_some_and(holds) {
            return Ok(Value::Boolean(false));
        }
    }
    Ok(Value::Boolean(true))
}

/// `compare`, with Java's result for texts: their distance.
pub(crate) fn compare_values(a: &Value, b: &Value) -> Result<Value> {
    let order = compare(a, b)?;
    if order == Ordering::Equal {
        return Ok(Value::Integer(0));
    }
    let (a, b) = match (a, b) {
        (Value::String(a), Value::String(b)) => (a.as_str(), b.as_str()),
        (Value::Keyword(a), Value::Keyword(b)) if a.namespace().is_none() && b.namespace().is_none() => {
            (a.full(), b.full())
        }
        (Value::Symbol(a), Value::Symbol(b)) if a.namespace().is_none() && b.namespace().is_none() => {
            (a.full(), b.full())
        }
        (Value::Character(a), Value::Character(b)) => {
            return Ok(Value::Integer(i64::from(u32::from(*a)) - i64::from(u32::from(*b))));
        }
        _ => return Ok(Value::Integer(order as i64)),
    };
    touch_bytes(a.len().max(b.len()));
    let difference = a
        .encode_utf16()
        .zip(b.encode_utf16())
        .find(|(a, b)| a != b)
        .map(|(a, b)| i64::from(a) - i64::from(b))
        .unwrap_or_else(|| a.encode_utf16().count() as i64 - b.encode_utf16().count() as i64);
    Ok(Value::Integer(difference))
}

fn sign(name: &str, value: &Value, holds: fn(Option<i8>) -> bool) -> Result<Value> {
    if !number::is_number(value) {
        return Err(number::not_a_number(name, value));
    }
    Ok(holds(number::sign(value)).into())
}

fn parity(name: &str, value: &Value, even: bool) -> Result<Value> {
    let is_even = match value {
        Value::Integer(value) => value % 2 == 0,
        Value::BigInteger(value) => !value.bit(0),
        other => {
            let kind = if number::is_number(other) { ErrorKind::InvalidArgument } else { ErrorKind::Type };
            return Err(Error::new(kind, format!("{name}: expected an integer, got {}", other.type_name())));
        }
    };
    Ok((is_even == even).into())
}

fn float(name: &str, value: &Value, holds: fn(f64) -> bool) -> Result<Value> {
    match value {
        Value::Float(value) => Ok(holds(*value).into()),
        value if number::is_number(value) => Ok(false.into()),
        other => Err(type_error(name, "a number", other)),
    }
}
