//! Numbers: `Math/...`, `clojure.math`, conversions between the kinds of number, and numbers as text.
//!
//! The numeric tower itself, `+` and its like, is in `value::number`.

pub(super) mod convert;
pub(super) mod functions;
pub(super) mod parse;

use super::{Constant, type_error};
use crate::error::{Error, ErrorKind, Result};
use crate::value::{Value, number};

pub(crate) const CONSTANTS: &[Constant] = &[
    ("Math/PI", || Value::Float(std::f64::consts::PI)),
    ("Math/E", || Value::Float(std::f64::consts::E)),
    ("clojure.math/PI", || Value::Float(std::f64::consts::PI)),
    ("clojure.math/E", || Value::Float(std::f64::consts::E)),
    ("Long/MAX_VALUE", || Value::Integer(i64::MAX)),
    ("Long/MIN_VALUE", || Value::Integer(i64::MIN)),
    ("Integer/MAX_VALUE", || Value::Integer(i64::from(i32::MAX))),
    ("Integer/MIN_VALUE", || Value::Integer(i64::from(i32::MIN))),
    ("Double/MAX_VALUE", || Value::Float(f64::MAX)),
    // The smallest positive double, not the smallest with full precision.
    ("Double/MIN_VALUE", || Value::Float(f64::from_bits(1))),
    ("Double/POSITIVE_INFINITY", || Value::Float(f64::INFINITY)),
    ("Double/NEGATIVE_INFINITY", || Value::Float(f64::NEG_INFINITY)),
    ("Double/NaN", || Value::Float(f64::NAN)),
];

/// Reads an argument as a double.
fn double(function: &str, value: &Value) -> Result<f64> {
    number::to_f64(value).ok_or_else(|| type_error(function, "a number", value))
}

/// Reads an argument as a 64 bit integer. Whole doubles are refused, as in Clojure.
fn long(function: &str, value: &Value) -> Result<i64> {
    match value {
        Value::Integer(value) => Ok(*value),
        Value::BigInteger(value) => i64::try_from(&**value).map_err(|_| overflow(function)),
        other => Err(type_error(function, "an integer", other)),
    }
}

#[cold]
fn overflow(function: &str) -> Error {
    Error::new(ErrorKind::Arithmetic, format!("{function}: integer overflow"))
}
