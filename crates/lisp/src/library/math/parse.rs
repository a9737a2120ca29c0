//! Numbers from text, and numbers to text in another base.

use super::long;
use crate::error::{Error, ErrorKind, Result};
use crate::library::strings::whole_string as text;
use crate::library::{Arity, CallContext, Native, type_error};
use crate::printer::double_text;
use crate::value::Value;

pub(crate) const NATIVES: &[Native] = &[
    Native::unary("parse-long", |c, a| {
        Ok(parse_long(text(c.name, &a[0])?, 10).map_or(Value::Nil, Value::Integer))
    }),
    Native::unary("parse-double", |c, a| {
        Ok(parse_double(text(c.name, &a[0])?).map_or(Value::Nil, Value::Float))
    }),
    Native::unary("parse-boolean", |c, a| {
        Ok(match text(c.name, &a[0])?.as_str() {
            "true" => Value::Boolean(true),
            "false" => Value::Boolean(false),
            _ => Value::Nil,
        })
    }),
    Native::leaf("Integer/parseInt", Arity::between(1, 2), &[], |c, a| {
        integer(c.name, a, i64::from(i32::MAX))
    }),
    Native::unary("Integer/valueOf", |c, a| integer(c.name, a, i64::from(i32::MAX))),
    Native::leaf("Long/parseLong", Arity::between(1, 2), &[], |c, a| integer(c.name, a, i64::MAX)),
    Native::unary("Long/valueOf", |c, a| integer(c.name, a, i64::MAX)),
    Native::unary("Double/parseDouble", |c, a| floating(c.name, a)),
    Native::unary("Double/valueOf", |c, a| floating(c.name, a)),
    Native::unary("Float/parseFloat", |c, a| floating(c.name, a)),
    Native::unary("Boolean/parseBoolean", |c, a| match &a[0] {
        Value::Nil => Ok(Value::Boolean(false)),
        other => Ok(Value::Boolean(text(c.name, other)?.eq_ignore_ascii_case("true"))),
    }),
    Native::unary("Double/isNaN", |c, a| Ok(Value::Boolean(super::double(c.name, &a[0])?.is_nan()))),
    Native::unary("Double/isInfinite", |c, a| Ok(super::double(c.name, &a[0])?.is_infinite().into())),
    Native::leaf("Integer/toString", Arity::between(1, 2), &[], to_text),
    Native::leaf("Long/toString", Arity::between(1, 2), &[], to_text),
    Native::unary("Double/toString", |c, a| c.string(double_text(super::double(c.name, &a[0])?))),
    Native::unary("Integer/toBinaryString", |c, a| c.string(format!("{:b}", long(c.name, &a[0])? as i32))),
    Native::unary("Integer/toHexString", |c, a| c.string(format!("{:x}", long(c.name, &a[0])? as i32))),
    Native::unary("Integer/toOctalString", |c, a| c.string(format!("{:o}", long(c.name, &a[0])? as i32))),
    Native::unary("Long/toBinaryString", |c, a| c.string(format!("{:b}", long(c.name, &a[0])?))),
    Native::unary("Long/toHexString", |c, a| c.string(format!("{:x}", long(c.name, &a[0])?))),
];

/// The error for text that cannot be parsed.
pub(super) fn unreadable(function: &str, text: &str, what: &str) -> Error {
    let shown: String = text.chars().take(40).collect();
    Error::new(ErrorKind::InvalidText, format!("{function}: {shown:?} is not {what}"))
}

/// Parses a sign and digits, without surrounding space.
fn parse_long(text: &str, radix: u32) -> Option<i64> {
    i64::from_str_radix(text, radix).ok()
}

fn integer(function: &str, arguments: &[Value], most: i64) -> Result<Value> {
    let radix = match arguments.get(1) {
        None => 10,
        Some(Value::Integer(radix @ 2..=36)) => u32::try_from(*radix).unwrap_or(10),
        Some(other) => return Err(type_error(function, "a radix from 2 to 36", other)),
    };
    if let (Value::Integer(value), true) = (&arguments[0], function.ends_with("valueOf")) {
        return Ok(Value::Integer(*value));
    }
    let text = text(function, &arguments[0])?;
    match parse_long(text, radix) {
        Some(value) if value <= most && value >= -most - 1 => Ok(Value::Integer(value)),
        _ => Err(unreadable(function, text, "an integer of its size")),
    }
}

fn floating(function: &str, arguments: &[Value]) -> Result<Value> {
    if let (Value::Float(_), true) = (&arguments[0], function.ends_with("valueOf")) {
        return Ok(arguments[0].clone());
    }
    let text = text(function, &arguments[0])?;
    parse_double(text).map(Value::Float).ok_or_else(|| unreadable(function, text, "a number"))
}

/// Parses a double as Java does: surrounding white space, an optional suffix `d` or `f`, `NaN` and
/// `Infinity`, and hexadecimal digits with a power of two.
fn parse_double(text: &str) -> Option<f64> {
    let text = text.trim_matches(|character: char| character <= ' ');
    let (sign, magnitude) = match text.as_bytes().first()? {
        b'-' => (-1.0, &text[1..]),
        b'+' => (1.0, &text[1..]),
        _ => (1.0, text),
    };
    match magnitude {
        "NaN" => return Some(f64::NAN),
        "Infinity" => return Some(sign * f64::INFINITY),
        _ => {}
    }
    if let Some(rest) = magnitude.strip_prefix("0x").or_else(|| magnitude.strip_prefix("0X")) {
        return hexadecimal(rest).map(|value| sign * value);
    }
    let digits = magnitude.strip_suffix(['d', 'D', 'f', 'F']).unwrap_or(magnitude);
    // Beyond this, Rust accepts only words and signs.
    let plain = digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-'));
    let begins = digits.starts_with(|first: char| first.is_ascii_digit() || first == '.');
    if plain && begins { digits.parse::<f64>().ok().map(|value| sign * value) } else { None }
}

/// Parses `1.8p1`: hexadecimal digits and a power of two, with at most as many digits as a double holds
/// exactly.
fn hexadecimal(text: &str) -> Option<f64> {
    let (digits, exponent) = text.split_once(['p', 'P'])?;
    let exponent: i32 = exponent.strip_suffix(['d', 'D', 'f', 'F']).unwrap_or(exponent).parse().ok()?;
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let all = format!("{whole}{fraction}");
    // More than thirteen digits would require rounding, which is not implemented.
    if all.is_empty() || all.len() > 13 || !all.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let mantissa = u64::from_str_radix(&all, 16).ok()?;
    let exponent = exponent.saturating_sub(4 * i32::try_from(fraction.len()).ok()?);
    // In two steps, because a single power of two may be out of range although the result is not.
    let half = exponent / 2;
    Some(mantissa as f64 * 2f64.powi(half) * 2f64.powi(exponent - half))
}

fn to_text(context: &mut CallContext<'_>, arguments: &[Value]) -> Result<Value> {
    let value = long(context.name, &arguments[0])?;
    let text = match arguments.get(1) {
        None => value.to_string(),
        Some(Value::Integer(radix @ 2..=36)) => {
            num_bigint::BigInt::from(value).to_str_radix(u32::try_from(*radix).unwrap_or(10))
        }
        Some(other) => return Err(context.type_error("a radix from 2 to 36", other)),
    };
    context.string(text)
}
