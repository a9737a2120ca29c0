//! Bits of 64 bit integers.

use super::{Arity, Native, type_error};
use crate::error::Result;
use crate::value::Value;

pub(crate) const NATIVES: &[Native] = &[
    Native::leaf("bit-and", Arity::at_least(2), &[], |c, a| fold(c.name, a, |x, y| x & y)),
    Native::leaf("bit-or", Arity::at_least(2), &[], |c, a| fold(c.name, a, |x, y| x | y)),
    Native::leaf("bit-xor", Arity::at_least(2), &[], |c, a| fold(c.name, a, |x, y| x ^ y)),
    Native::leaf("bit-and-not", Arity::at_least(2), &[], |c, a| fold(c.name, a, |x, y| x & !y)),
    Native::unary("bit-not", |c, a| Ok(Value::Integer(!integer(c.name, &a[0])?))),
    // Java uses the six lowest bits of a shift.
    Native::binary("bit-shift-left", |c, a| fold(c.name, a, |x, n| x << (n & 63))),
    Native::binary("bit-shift-right", |c, a| fold(c.name, a, |x, n| x >> (n & 63))),
    Native::binary("unsigned-bit-shift-right", |c, a| fold(c.name, a, |x, n| (x as u64 >> (n & 63)) as i64)),
    Native::binary("bit-set", |c, a| fold(c.name, a, |x, n| x | 1 << (n & 63))),
    Native::binary("bit-clear", |c, a| fold(c.name, a, |x, n| x & !(1 << (n & 63)))),
    Native::binary("bit-flip", |c, a| fold(c.name, a, |x, n| x ^ 1 << (n & 63))),
    Native::binary("bit-test", |c, a| {
        let (bits, at) = (integer(c.name, &a[0])?, integer(c.name, &a[1])?);
        Ok(Value::Boolean(bits >> (at & 63) & 1 == 1))
    }),
    Native::unary("Long/bitCount", |c, a| Ok(i64::from(integer(c.name, &a[0])?.count_ones()).into())),
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
