//! `java.lang.Math` and `clojure.math`.

use std::sync::Arc;

use num_traits::Signed;

use super::{double, long, overflow};
use crate::error::Result;
use crate::library::{CallContext, Native, type_error};
use crate::value::{Value, number};

macro_rules! of_doubles {
    ($($java:literal $clojure:literal $function:expr;)*) => {
        &[$(
            Native::unary($java, |c, a| {
                let function: fn(f64) -> f64 = $function;
                Ok(Value::Float(function(double(c.name, &a[0])?)))
            }),
            Native::unary($clojure, |c, a| {
                let function: fn(f64) -> f64 = $function;
                Ok(Value::Float(function(double(c.name, &a[0])?)))
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

pub(crate) const NATIVES: &[Native] =
    &[
        Native::binary("Math/pow", |c, a| of_two(c.name, a, power)),
        Native::binary("clojure.math/pow", |_, a| of_two("pow", a, power)),
        Native::binary("Math/hypot", |c, a| of_two(c.name, a, f64::hypot)),
        Native::binary("clojure.math/hypot", |_, a| of_two("hypot", a, f64::hypot)),
        Native::binary("Math/atan2", |c, a| of_two(c.name, a, f64::atan2)),
        Native::binary("clojure.math/atan2", |_, a| of_two("atan2", a, f64::atan2)),
        Native::unary("Math/round", |c, a| match &a[0] {
            Value::Float(_) => round(c.name, a),
            other => Err(c.type_error("a double", other).hint("convert it with `(double x)`")),
        }),
        Native::unary("clojure.math/round", |_, a| round("round", a)),
        Native::unary("Math/abs", |c, a| match &a[0] {
            Value::Integer(_) | Value::Float(_) => absolute(c, a),
            other => Err(type_error("Math/abs", "an integer or a double", other)
                .hint("`abs` takes every kind of number")),
        }),
        Native::unary("abs", absolute),
        Native::binary("Math/max", |c, a| extreme(c.name, a, std::cmp::Ordering::Greater)),
        Native::binary("Math/min", |c, a| extreme(c.name, a, std::cmp::Ordering::Less)),
        Native::binary("Math/floorDiv", |c, a| floor_division(c.name, a, Part::Quotient)),
        Native::binary("Math/floorMod", |c, a| floor_division(c.name, a, Part::Modulus)),
        Native::binary("clojure.math/floor-div", |_, a| floor_division("floor-div", a, Part::Quotient)),
        Native::binary("clojure.math/floor-mod", |_, a| floor_division("floor-mod", a, Part::Modulus)),
        Native::binary("Math/addExact", |c, a| exact(c.name, a, i64::checked_add)),
        Native::binary("Math/subtractExact", |c, a| exact(c.name, a, i64::checked_sub)),
        Native::binary("Math/multiplyExact", |c, a| exact(c.name, a, i64::checked_mul)),
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

fn absolute(context: &mut CallContext<'_>, arguments: &[Value]) -> Result<Value> {
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
        other => return Err(context.type_error("a number", other)),
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
