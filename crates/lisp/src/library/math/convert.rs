//! Conversions between the kinds of number.

use std::sync::Arc;

use num_bigint::BigInt;
use num_traits::ToPrimitive;

use super::{double, overflow};
use crate::effort;
use crate::error::{Error, Result};
use crate::library::{CallContext, Native, type_error};
use crate::value::integers::count_reading;
use crate::value::{Ratio, Value, number};

pub(crate) const NATIVES: &[Native] = &[
    Native::unary("long", |c, a| bounded(c.name, &a[0], i64::MIN, i64::MAX)),
    Native::unary("int", |c, a| bounded(c.name, &a[0], i64::from(i32::MIN), i64::from(i32::MAX))),
    Native::unary("short", |c, a| bounded(c.name, &a[0], i64::from(i16::MIN), i64::from(i16::MAX))),
    Native::unary("byte", |c, a| bounded(c.name, &a[0], i64::from(i8::MIN), i64::from(i8::MAX))),
    Native::unary("double", |c, a| Ok(Value::Float(double(c.name, &a[0])?))),
    // There is one floating-point type; `float` keeps its full precision.
    Native::unary("float", |c, a| Ok(Value::Float(double(c.name, &a[0])?))),
    Native::unary("num", |c, a| {
        if number::is_number(&a[0]) { Ok(a[0].clone()) } else { Err(c.type_error("a number", &a[0])) }
    }),
    Native::unary("bigint", big_integer),
    Native::unary("biginteger", big_integer),
    Native::unary("numerator", |c, a| match &a[0] {
        Value::Ratio(ratio) => c.number(number::integer(ratio.numerator.clone())),
        other => Err(c.type_error("a ratio", other)),
    }),
    Native::unary("denominator", |c, a| match &a[0] {
        Value::Ratio(ratio) => c.number(number::integer(ratio.denominator.clone())),
        other => Err(c.type_error("a ratio", other)),
    }),
    Native::unary("rationalize", rationalize),
    Native::unary(".intValue", |c, a| truncated(c.name, &a[0]).map(|v| Value::Integer(i64::from(v as i32)))),
    Native::unary(".longValue", |c, a| truncated(c.name, &a[0]).map(Value::Integer)),
    Native::unary(".doubleValue", |c, a| Ok(Value::Float(double(c.name, &a[0])?))),
];

/// Truncates a number to an integer within bounds. Characters are their codes.
fn bounded(function: &str, value: &Value, least: i64, most: i64) -> Result<Value> {
    let out_of_range = || Error::argument(format!("{function}: the value is out of range"));
    let integer = match value {
        Value::Character(character) => i64::from(u32::from(*character)),
        Value::Integer(value) => *value,
        Value::Float(value) if value.is_nan() => 0,
        // The bounds as doubles: the upper one of 64 bits is one too high.
        Value::Float(value) if value.trunc() < least as f64 || value.trunc() > most as f64 => {
            return Err(out_of_range());
        }
        Value::Float(value) => *value as i64,
        Value::BigInteger(value) => value.to_i64().ok_or_else(out_of_range)?,
        Value::Ratio(value) => value.truncate().to_i64().ok_or_else(out_of_range)?,
        other => {
            let error = type_error(function, "a number", other);
            return Err(match other {
                Value::String(_) => error.hint("read a number from text with `parse-long` or `parse-double`"),
                _ => error,
            });
        }
    };
    match value {
        Value::Integer(_) if function == "int" && !(least..=most).contains(&integer) => {
            Err(overflow(function))
        }
        _ if !(least..=most).contains(&integer) => Err(out_of_range()),
        _ => Ok(Value::Integer(integer)),
    }
}

/// Truncates a number to 64 bits without an error, as Java's methods do.
fn truncated(function: &str, value: &Value) -> Result<i64> {
    match value {
        Value::Integer(value) => Ok(*value),
        Value::Float(value) => Ok(*value as i64),
        Value::BigInteger(value) => Ok((&**value & BigInt::from(u64::MAX)).to_u64().unwrap_or(0) as i64),
        Value::Ratio(value) => Ok(value.truncate().to_i64().unwrap_or(i64::MAX)),
        other => Err(type_error(function, "a number", other)),
    }
}

fn big_integer(context: &mut CallContext<'_>, arguments: &[Value]) -> Result<Value> {
    let function = context.name;
    let value = match &arguments[0] {
        Value::Integer(value) => BigInt::from(*value),
        Value::BigInteger(_) => return Ok(arguments[0].clone()),
        Value::Ratio(ratio) => ratio.truncate(),
        Value::Float(value) if value.is_finite() => whole(value.trunc()),
        Value::Float(_) => return Err(Error::argument(format!("{function}: infinite or NaN"))),
        Value::String(text) => {
            // Four bits hold one decimal digit and more.
            context.limits.check_number(text.len() as u64 * 3)?;
            let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
            let valid = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
            effort::check(count_reading(digits.len()))?;
            match text.parse() {
                Ok(value) if valid => value,
                _ => return Err(super::parse::unreadable(function, text, "an integer")),
            }
        }
        other => return Err(type_error(function, "a number", other)),
    };
    context.number(number::big(value))
}

/// Returns the fraction of the decimal digits of a double: `0.1` is one tenth, not the binary fraction next
/// to it.
fn rationalize(context: &mut CallContext<'_>, arguments: &[Value]) -> Result<Value> {
    let Value::Float(value) = &arguments[0] else {
        return if number::is_number(&arguments[0]) {
            Ok(arguments[0].clone())
        } else {
            Err(type_error("rationalize", "a number", &arguments[0]))
        };
    };
    if !value.is_finite() {
        return Err(Error::argument("rationalize: infinite or NaN"));
    }
    let text = format!("{value:e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let places = digits.split_once('.').map_or(0, |(_, fraction)| fraction.len() as i64);
    let mantissa: BigInt = digits.replace('.', "").parse().unwrap_or_default();
    let exponent = exponent.parse::<i64>().unwrap_or(0) - places;
    let power = BigInt::from(10).pow(u32::try_from(exponent.unsigned_abs()).unwrap_or(0));
    let value = if exponent >= 0 {
        number::big(mantissa * power)
    } else {
        match Ratio::reduce(mantissa, power) {
            Ok(ratio) => Value::Ratio(Arc::new(ratio)),
            Err(whole) => number::big(whole),
        }
    };
    context.number(value)
}

/// Returns the integer that a double without a fraction prints as: Clojure uses the shortest digits that
/// identify the double, not its exact value.
fn whole(value: f64) -> BigInt {
    let text = format!("{value:e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let exponent: usize = exponent.parse().unwrap_or(0);
    let zeros = "0".repeat(exponent.saturating_sub(fraction.len()));
    format!("{whole}{fraction}{zeros}").parse().unwrap_or_default()
}
