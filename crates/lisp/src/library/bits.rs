//! Bits of 64 bit integers.

use super::{Arity, Native, type_error};
use crate::error::Result;
use crate::value::Value;

pub(crate) const NATIVES: &[Native] = &[
    Native::leaf("bit-and", Arity::at_least(2), &[], |_, a| fold("bit-and", a, |x, y| x & y)),
    Native::leaf("bit-or", Arity::at_least(2), &[], |_, a| fold("bit-or", a, |x, y| x | y)),
    Native::leaf("bit-xor", Arity::at_least(2), &[], |_, a| fold("bit-xor", a, |x, y| x ^ y)),
    Native::leaf("bit-and-not", Arity::at_least(2), &[], |_, a| fold("bit-and-not", a, |x, y| x & !y)),
    Native::leaf("bit-not", Arity::exactly(1), &[], |_, a| Ok(Value::Integer(!integer("bit-not", &a[0])?))),
    // Java uses the six lowest bits of a shift.
    Native::leaf("bit-shift-left", Arity::exactly(2), &[], |_, a| {
        pair("bit-shift-left", a, |x, n| x << (n & 63))
    }),
    Native::leaf("bit-shift-right", Arity::exactly(2), &[], |_, a| {
        pair("bit-shift-right", a, |x, n| x >> (n & 63))
    }),
    Native::leaf("unsigned-bit-shift-right", Arity::exactly(2), &[], |_, a| {
        pair("unsigned-bit-shift-right", a, |x, n| ((x as u64) >> (n & 63)) as i64)
    }),
    Native::leaf("bit-set", Arity::exactly(2), &[], |_, a| pair("bit-set", a, |x, n| x | 1 << (n & 63))),
    Native::leaf("bit-clear", Arity::exactly(2), &[], |_, a| {
        pair("bit-clear", a, |x, n| x & !(1 << (n & 63)))
    }),
    Native::leaf("bit-flip", Arity::exactly(2), &[], |_, a| pair("bit-flip", a, |x, n| x ^ 1 << (n & 63))),
    Native::leaf("bit-test", Arity::exactly(2), &[], |_, a| {
        let (bits, at) = (integer("bit-test", &a[0])?, integer("bit-test", &a[1])?);
        Ok(Value::Boolean(bits >> (at & 63) & 1 == 1))
    }),
    Native::leaf("Long/bitCount", Arity::exactly(1), &[], |_, a| {
        Ok(Value::Integer(i64::from(integer("Long/bitCount", &a[0])?.count_ones())))
    }),
];

fn integer(function: &str, value: &Value) -> Result<i64> {
    match value {
        Value::Integer(value) => Ok(*value),
        Value::BigInteger(value) => i64::try_from(&**value)
            .map_err(|_| type_error(function, "a 64 bit integer", &Value::BigInteger(value.clone()))),
        other => Err(type_error(function, "an integer", other)),
    }
}

fn fold(function: &str, arguments: &[Value], combine: fn(i64, i64) -> i64) -> Result<Value> {
    let mut result = integer(function, &arguments[0])?;
    for value in &arguments[1..] {
        result = combine(result, integer(function, value)?);
    }
    Ok(Value::Integer(result))
}

fn pair(function: &str, arguments: &[Value], combine: fn(i64, i64) -> i64) -> Result<Value> {
    fold(function, arguments, combine)
}
