//! `java.lang.Math` and `clojure.math`.

use std::sync::Arc;

use num_traits::Signed;

use super::{double, long, overflow};
use crate::error::Result;
use crate::library::{Arity, CallContext, Native, type_error};
use crate::value::{Value, number};

macro_rules! of_doubles {
    ($($java:literal $clojure:literal $function:expr;)*) => {
        &[$(
            Native::leaf($java, Arity::exactly(1), &[], |_, a| {
                let function: fn(f64) -> f64 = $function;
                Ok(Value::Float(function(double($java, &a[0])?)))
            }),
            Native::leaf($clojure, Arity::exactly(1), &[], |_, a| {
                let function: fn(f64) -> f64 = $function;
                Ok(Value::Float(function(double($clojure, &a[0])?)))
            }),
        )*]
    };
}

/// The functions of one double, under both of their names.
pub(crate) const OF_DOUBLES: &[Native] = of_doubles! {
    "Math/sqrt" "clojure.math/sqrt" f64::sqrt;
    "Math/cbrt" "clojure.math/cbrt" f64::cbrt;
    "Math/floor" "clojure.math/floor" f64::floor;
    "Math/ceil" "clojure.math/ceil" f64::ceil;
    "Math/rint" "clojure.math/rint" f64::round_ties_even;
    "Math/exp" "clojure.math/exp" f64::exp;
    "Math/expm1" "clojure.math/expm1" f64::exp_m1;
    "Math/log" "clojure.math/log" f64::ln;
    "Math/log10" "clojure.math/log10" f64::log10;
    "Math/log1p" "clojure.math/log1p" f64::ln_1p;
    "Math/sin" "clojure.math/sin" f64::sin;
    "Math/cos" "clojure.math/cos" f64::cos;
    "Math/tan" "clojure.math/tan" f64::tan;
    "Math/asin" "clojure.math/asin" f64::asin;
    "Math/acos" "clojure.math/acos" f64::acos;
    "Math/atan" "clojure.math/atan" f64::atan;
    "Math/sinh" "clojure.math/sinh" f64::sinh;
    "Math/cosh" "clojure.math/cosh" f64::cosh;
    "Math/tanh" "clojure.math/tanh" f64::tanh;
    "Math/signum" "clojure.math/signum" |x: f64| if x == 0.0 || x.is_nan() { x } else { x.signum() };
    "Math/toRadians" "clojure.math/to-radians" f64::to_radians;
    "Math/toDegrees" "clojure.math/to-degrees" f64::to_degrees;
};

pub(crate) const NATIVES: &[Native] = &[
    Native::leaf("Math/pow", Arity::exactly(2), &[], |_, a| of_two("Math/pow", a, power)),
    Native::leaf("clojure.math/pow", Arity::exactly(2), &[], |_, a| of_two("pow", a, power)),
    Native::leaf("Math/hypot", Arity::exactly(2), &[], |_, a| of_two("Math/hypot", a, f64::hypot)),
    Native::leaf("clojure.math/hypot", Arity::exactly(2), &[], |_, a| of_two("hypot", a, f64::hypot)),
    Native::leaf("Math/atan2", Arity::exactly(2), &[], |_, a| of_two("Math/atan2", a, f64::atan2)),
    Native::leaf("clojure.math/atan2", Arity::exactly(2), &[], |_, a| of_two("atan2", a, f64::atan2)),
    Native::leaf("Math/round", Arity::exactly(1), &[], |_, a| match &a[0] {
        Value::Float(_) => round("Math/round", a),
        other => Err(type_error("Math/round", "a double", other).hint("convert it with `(double x)`")),
    }),
    Native::leaf("clojure.math/round", Arity::exactly(1), &[], |_, a| round("round", a)),
    Native::leaf("Math/abs", Arity::exactly(1), &[], |c, a| match &a[0] {
        Value::Integer(_) | Value::Float(_) => absolute(c, "Math/abs", a),
        other => {
            Err(type_error("Math/abs", "an integer or a double", other)
                .hint("`abs` takes every kind of number"))
        }
    }),
    Native::leaf("abs", Arity::exactly(1), &[], |c, a| absolute(c, "abs", a)),
    Native::leaf("Math/max", Arity::exactly(2), &[], |_, a| {
        extreme("Math/max", a, std::cmp::Ordering::Greater)
    }),
    Native::leaf("Math/min", Arity::exactly(2), &[], |_, a| extreme("Math/min", a, std::cmp::Ordering::Less)),
    Native::leaf("Math/floorDiv", Arity::exactly(2), &[], |_, a| {
        floor_division("Math/floorDiv", a, Part::Quotient)
    }),
    Native::leaf("Math/floorMod", Arity::exactly(2), &[], |_, a| {
        floor_division("Math/floorMod", a, Part::Modulus)
    }),
    Native::leaf("clojure.math/floor-div", Arity::exactly(2), &[], |_, a| {
        floor_division("floor-div", a, Part::Quotient)
    }),
    Native::leaf("clojure.math/floor-mod", Arity::exactly(2), &[], |_, a| {
        floor_division("floor-mod", a, Part::Modulus)
    }),
    Native::leaf("Math/addExact", Arity::exactly(2), &[], |_, a| exact("Math/addExact", a, i64::checked_add)),
    Native::leaf("Math/subtractExact", Arity::exactly(2), &[], |_, a| {
        exact("Math/subtractExact", a, i64::checked_sub)
    }),
    Native::leaf("Math/multiplyExact", Arity::exactly(2), &[], |_, a| {
        exact("Math/multiplyExact", a, i64::checked_mul)
    }),
];

/// Java's `pow` differs from C's for one to the power of NaN.
fn power(base: f64, exponent: f64) -> f64 {
    if exponent.is_nan() || (base.abs() == 1.0 && exponent.is_infinite()) {
        f64::NAN
    } else {
        base.powf(exponent)
    }
}

fn of_two(function: &str, arguments: &[Value], combine: fn(f64, f64) -> f64) -> Result<Value> {
    Ok(Value::Float(combine(double(function, &arguments[0])?, double(function, &arguments[1])?)))
}

/// Rounds half up to the nearest integer; NaN is 0, and values out of range saturate, as in Java.
fn round(function: &str, arguments: &[Value]) -> Result<Value> {
    match &arguments[0] {
        Value::Integer(_) => Ok(arguments[0].clone()),
        value => {
            let value = double(function, value)?;
            let floor = value.floor();
            let rounded = if value - floor >= 0.5 { floor + 1.0 } else { floor };
            // The conversion saturates and maps NaN to 0.
            Ok(Value::Integer(rounded as i64))
        }
    }
}

fn absolute(context: &mut CallContext<'_>, function: &str, arguments: &[Value]) -> Result<Value> {
    Ok(match &arguments[0] {
        // The smallest integer has no positive counterpart and does not change, as in Java.
        Value::Integer(value) => Value::Integer(value.wrapping_abs()),
        Value::Float(value) => Value::Float(value.abs()),
        Value::BigInteger(value) if value.is_negative() => return context.number(number::big(value.abs())),
        Value::Ratio(ratio) if ratio.numerator.is_negative() => {
            let mut positive = (**ratio).clone();
            positive.numerator = -positive.numerator;
            Value::Ratio(Arc::new(positive))
        }
        Value::BigInteger(_) | Value::Ratio(_) => arguments[0].clone(),
        other => return Err(type_error(function, "a number", other)),
    })
}

/// The larger or smaller of two integers or of two doubles; Java does not mix them.
fn extreme(function: &str, arguments: &[Value], wanted: std::cmp::Ordering) -> Result<Value> {
    match (&arguments[0], &arguments[1]) {
        (Value::Integer(a), Value::Integer(b)) => {
            Ok(Value::Integer(if a.cmp(b) == wanted { *a } else { *b }))
        }
        (Value::Float(a), Value::Float(b)) if a.is_nan() || b.is_nan() => Ok(Value::Float(f64::NAN)),
        (Value::Float(a), Value::Float(b)) => {
            Ok(Value::Float(if a.total_cmp(b) == wanted { *a } else { *b }))
        }
        (Value::Integer(_) | Value::Float(_), other) | (other, _) => {
            Err(type_error(function, "two integers or two doubles", other)
                .hint("`max` and `min` take numbers of every kind together"))
        }
    }
}

#[derive(Clone, Copy)]
enum Part {
    Quotient,
    Modulus,
}

fn floor_division(function: &str, arguments: &[Value], part: Part) -> Result<Value> {
    let (a, b) = (long(function, &arguments[0])?, long(function, &arguments[1])?);
    if b == 0 {
        return Err(number::divide_by_zero(function));
    }
    let quotient = num_integer::Integer::div_floor(&i128::from(a), &i128::from(b));
    Ok(Value::Integer(match part {
        Part::Quotient => quotient as i64,
        Part::Modulus => (i128::from(a) - quotient * i128::from(b)) as i64,
    }))
}

fn exact(function: &str, arguments: &[Value], combine: fn(i64, i64) -> Option<i64>) -> Result<Value> {
    let (a, b) = (long(function, &arguments[0])?, long(function, &arguments[1])?);
    combine(a, b).map(Value::Integer).ok_or_else(|| overflow(function))
}
