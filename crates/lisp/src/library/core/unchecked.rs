//! Arithmetic that wraps around at 64 bits, as Java's does.

use super::NOT;
use crate::error::Result;
use crate::library::{Arity, CallContext, Native};
use crate::value::number::Overflow;
use crate::value::{Value, number};

macro_rules! unchecked {
    ($($name:literal $arity:literal $wrapping:expr, $floating:expr;)*) => {
        &[$(Native::leaf($name, Arity::exactly($arity), NOT, |c, a| {
            let wrapping: fn(i64, i64) -> i64 = $wrapping;
            let floating: fn(f64, f64) -> f64 = $floating;
            compute(c, $name, a, wrapping, floating)
        }),)*]
    };
}

pub(crate) const NATIVES: &[Native] = unchecked! {
    "unchecked-inc" 1 |a, _| a.wrapping_add(1), |a, _| a + 1.0;
    "unchecked-dec" 1 |a, _| a.wrapping_sub(1), |a, _| a - 1.0;
    "unchecked-negate" 1 |a, _| a.wrapping_neg(), |a, _| -a;
    "unchecked-add" 2 i64::wrapping_add, |a, b| a + b;
    "unchecked-subtract" 2 i64::wrapping_sub, |a, b| a - b;
    "unchecked-multiply" 2 i64::wrapping_mul, |a, b| a * b;
};

/// Computes with integers, or with doubles if one of them is.
fn compute(
    context: &mut CallContext<'_>,
    name: &str,
    arguments: &[Value],
    wrapping: fn(i64, i64) -> i64,
    floating: fn(f64, f64) -> f64,
) -> Result<Value> {
    if arguments.iter().any(|value| matches!(value, Value::Float(_))) {
        let double = |at: usize| arguments.get(at).map_or(Some(0.0), number::to_f64);
        return match (double(0), double(1)) {
            (Some(a), Some(b)) => Ok(Value::Float(floating(a, b))),
            _ => Err(crate::library::type_error(name, "numbers", &arguments[0])),
        };
    }
    match arguments {
        [Value::Integer(a)] => Ok(Value::Integer(wrapping(*a, 0))),
        [Value::Integer(a), Value::Integer(b)] => Ok(Value::Integer(wrapping(*a, *b))),
        // Other numbers do not wrap around.
        _ => {
            let one = Value::Integer(1);
            let (a, b) = (&arguments[0], arguments.get(1).unwrap_or(&one));
            let exact = match name {
                "unchecked-inc" | "unchecked-add" => number::add(a, b, Overflow::Promote),
                "unchecked-multiply" => number::multiply(a, b, Overflow::Promote),
                "unchecked-negate" => number::negate(a, Overflow::Promote),
                _ => number::subtract(a, b, Overflow::Promote),
            };
            exact.and_then(|value| context.number(value))
        }
    }
}
