//! The numeric tower: 64 bit integers, big integers, ratios and doubles, combined as Clojure combines them.
//!
//! A double with anything is a double; a ratio with an integer is a ratio or the integer it equals; a big
//! integer with an integer stays big. `+ - *` of two 64 bit integers overflow with an error, their primed
//! forms promote. Functions here refuse operands that are not numbers; the caller checks the size of big
//! numbers, because it has the limits.

use std::cmp::Ordering;
use std::sync::Arc;

use num_bigint::BigInt;
use num_integer::Integer as _;
use num_traits::{Signed, ToPrimitive, Zero};

use super::integers::{count_product, count_quotient, count_sum};
use super::{Ratio, Value};
use crate::effort::{self, given_up};
use crate::error::{Error, ErrorKind, Result};

/// Two operands converted to a common kind.
enum Pair<'a> {
    Integers(i64, i64),
    Big(AnyInteger<'a>, AnyInteger<'a>),
    Ratios(Box<(Ratio, Ratio)>),
    Floats(f64, f64),
}

/// An integer of either size.
enum AnyInteger<'a> {
    Small(BigInt),
    Big(&'a BigInt),
}

impl std::ops::Deref for AnyInteger<'_> {
    type Target = BigInt;

    fn deref(&self) -> &BigInt {
        match self {
            AnyInteger::Small(value) => value,
            AnyInteger::Big(value) => value,
        }
    }
}

pub(crate) fn is_number(value: &Value) -> bool {
    matches!(value, Value::Integer(_) | Value::Float(_) | Value::BigInteger(_) | Value::Ratio(_))
}

/// Returns the double nearest to a number.
pub(crate) fn to_f64(value: &Value) -> Option<f64> {
    Some(match value {
        Value::Integer(value) => *value as f64,
        Value::Float(value) => *value,
        // The leading bits are sufficient.
        Value::BigInteger(value) => value.to_f64().unwrap_or(f64::NAN),
        Value::Ratio(value) => value.to_f64(),
        _ => return None,
    })
}

/// Creates an integer that stays big, as Clojure keeps the results of big arithmetic.
pub(crate) fn big(value: BigInt) -> Value {
    Value::BigInteger(Arc::new(value))
}

/// Creates an integer in its smallest form.
pub(crate) fn integer(value: BigInt) -> Value {
    value.to_i64().map_or_else(|| big(value), Value::Integer)
}

fn ratio(numerator: BigInt, denominator: BigInt) -> Value {
    of_ratios(Ratio::reduce(numerator, denominator))
}

fn of_ratios(result: std::result::Result<Ratio, BigInt>) -> Value {
    match result {
        Ok(ratio) => Value::Ratio(Arc::new(ratio)),
        Err(whole) => big(whole),
    }
}

fn pair<'a>(name: &str, a: &'a Value, b: &'a Value) -> Result<Pair<'a>> {
    use Value::{BigInteger, Float, Integer, Ratio as Fraction};
    let whole = |value: &'a Value| match value {
        Integer(value) => AnyInteger::Small(BigInt::from(*value)),
        BigInteger(value) => AnyInteger::Big(value),
        _ => AnyInteger::Small(BigInt::zero()),
    };
    let fraction = |value: &'a Value| match value {
        Fraction(ratio) => (**ratio).clone(),
        other => Ratio { numerator: whole(other).clone(), denominator: BigInt::from(1) },
    };
    Ok(match (a, b) {
        (Integer(a), Integer(b)) => Pair::Integers(*a, *b),
        (Float(a), Float(b)) => Pair::Floats(*a, *b),
        (Float(_), other) | (other, Float(_)) if is_number(other) => {
            Pair::Floats(to_f64(a).unwrap_or(f64::NAN), to_f64(b).unwrap_or(f64::NAN))
        }
        (Integer(_) | BigInteger(_), Integer(_) | BigInteger(_)) => Pair::Big(whole(a), whole(b)),
        (Integer(_) | BigInteger(_) | Fraction(_), Integer(_) | BigInteger(_) | Fraction(_)) => {
            Pair::Ratios(Box::new((fraction(a), fraction(b))))
        }
        _ => return Err(not_numbers(name, a, b)),
    })
}

#[cold]
fn not_numbers(name: &str, a: &Value, b: &Value) -> Error {
    let message = format!("{name}: expected numbers, got {} and {}", a.type_name(), b.type_name());
    let error = Error::new(ErrorKind::Type, message);
    if a.is_nil() || b.is_nil() {
        return error.hint("a missing key or an empty result gives nil; supply a default, as in `(get m :k 0)` or `(or x 0)`");
    }
    if matches!(a, Value::String(_)) || matches!(b, Value::String(_)) {
        return error
            .hint("read a number from a text with `parse-long` or `parse-double`; join texts with `str`");
    }
    error
}

/// The error for an operand that is not a number.
#[cold]
pub(crate) fn not_a_number(name: &str, value: &Value) -> Error {
    Error::new(ErrorKind::Type, format!("{name}: expected a number, got {}", value.type_name()))
}

#[cold]
fn overflow(name: &str) -> Error {
    let error = Error::new(ErrorKind::Arithmetic, format!("{name}: integer overflow"));
    match name {
        "+" | "-" | "*" | "inc" | "dec" => {
            error.hint(format!("use `{name}'`, which promotes to big integers"))
        }
        _ => error,
    }
}

#[cold]
pub(crate) fn divide_by_zero(name: &str) -> Error {
    Error::new(ErrorKind::Arithmetic, format!("{name}: divide by zero"))
}

/// The treatment of overflow of two 64 bit integers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Overflow {
    Fail,
    Promote,
}

/// `+`
pub(crate) fn add(a: &Value, b: &Value, overflows: Overflow) -> Result<Value> {
    Ok(match pair("+", a, b)? {
        Pair::Integers(a, b) => match a.checked_add(b) {
            Some(sum) => Value::Integer(sum),
            None if overflows == Overflow::Promote => big(BigInt::from(a) + b),
            None => return Err(overflow("+")),
        },
        Pair::Floats(a, b) => Value::Float(a + b),
        Pair::Big(a, b) if count_sum(&a, &b) => return Err(given_up()),
        Pair::Big(a, b) => big(&*a + &*b),
        Pair::Ratios(pair) => of_ratios(pair.0.plus(&pair.1)),
    })
}

/// `-`
pub(crate) fn subtract(a: &Value, b: &Value, overflows: Overflow) -> Result<Value> {
    Ok(match pair("-", a, b)? {
        Pair::Integers(a, b) => match a.checked_sub(b) {
            Some(difference) => Value::Integer(difference),
            None if overflows == Overflow::Promote => big(BigInt::from(a) - b),
            None => return Err(overflow("-")),
        },
        Pair::Floats(a, b) => Value::Float(a - b),
        Pair::Big(a, b) if count_sum(&a, &b) => return Err(given_up()),
        Pair::Big(a, b) => big(&*a - &*b),
        Pair::Ratios(pair) => of_ratios(pair.0.plus(&pair.1.negated())),
    })
}

/// `*`
pub(crate) fn multiply(a: &Value, b: &Value, overflows: Overflow) -> Result<Value> {
    Ok(match pair("*", a, b)? {
        Pair::Integers(a, b) => match a.checked_mul(b) {
            Some(product) => Value::Integer(product),
            None if overflows == Overflow::Promote => big(BigInt::from(a) * b),
            None => return Err(overflow("*")),
        },
        Pair::Floats(a, b) => Value::Float(a * b),
        Pair::Big(a, b) if count_product(&a, &b) => return Err(given_up()),
        Pair::Big(a, b) => big(&*a * &*b),
        Pair::Ratios(pair) => of_ratios(pair.0.times(&pair.1)),
    })
}

/// `/`
pub(crate) fn divide(a: &Value, b: &Value) -> Result<Value> {
    Ok(match pair("/", a, b)? {
        Pair::Integers(_, 0) => return Err(divide_by_zero("/")),
        Pair::Integers(a, b) => match () {
            // The only quotient of two 64 bit integers that does not fit.
            _ if a == i64::MIN && b == -1 => big(-BigInt::from(a)),
            _ if a % b == 0 => Value::Integer(a / b),
            _ => match ratio(BigInt::from(a), BigInt::from(b)) {
                Value::BigInteger(whole) => integer((*whole).clone()),
                other => other,
            },
        },
        // Dividing a double by an exact zero is an error, by 0.0 it is not.
        Pair::Floats(..) if matches!(b, Value::Integer(0)) => return Err(divide_by_zero("/")),
        Pair::Floats(a, b) => Value::Float(a / b),
        Pair::Big(_, b) if b.is_zero() => return Err(divide_by_zero("/")),
        Pair::Big(a, b) => ratio(a.clone(), b.clone()),
        Pair::Ratios(pair) => {
            let (a, b) = *pair;
            if b.numerator.is_zero() {
                return Err(divide_by_zero("/"));
            }
            of_ratios(a.times(&b.inverted()))
        }
    })
}

/// The requested part of a division.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Division {
    Quotient,
    Remainder,
    Modulus,
}

impl Division {
    fn name(self) -> &'static str {
        match self {
            Division::Quotient => "quot",
            Division::Remainder => "rem",
            Division::Modulus => "mod",
        }
    }
}

/// `quot`, `rem` and `mod`
pub(crate) fn divide_whole(a: &Value, b: &Value, wanted: Division) -> Result<Value> {
    let name = wanted.name();
    Ok(match pair(name, a, b)? {
        Pair::Integers(_, 0) => return Err(divide_by_zero(name)),
        Pair::Integers(a, b) => Value::Integer(match wanted {
            Division::Quotient => match a.checked_div(b) {
                Some(quotient) => quotient,
                None => return Ok(big(-BigInt::from(a))),
            },
            Division::Remainder => a.wrapping_rem(b),
            Division::Modulus => {
                let rest = a.wrapping_rem(b);
                if rest != 0 && (rest < 0) != (b < 0) { rest + b } else { rest }
            }
        }),
        Pair::Floats(a, b) => {
            if b == 0.0 {
                return Err(divide_by_zero(name));
            }
            // Zero has no sign here: Clojure converts to an integer first.
            let quotient = (a / b).trunc() + 0.0;
            if !quotient.is_finite() {
                return Err(Error::new(ErrorKind::Arithmetic, format!("{name}: infinite or NaN")));
            }
            Value::Float(match wanted {
                Division::Quotient => quotient,
                Division::Remainder => a - quotient * b,
                Division::Modulus => {
                    let rest = a - quotient * b;
                    if rest != 0.0 && (rest < 0.0) != (b < 0.0) { rest + b } else { rest }
                }
            })
        }
        Pair::Big(a, b) => {
            if b.is_zero() {
                return Err(divide_by_zero(name));
            }
            effort::check(count_quotient(&a, &b))?;
            big(match wanted {
                Division::Quotient => &*a / &*b,
                Division::Remainder => &*a % &*b,
                Division::Modulus => a.mod_floor(&b),
            })
        }
        Pair::Ratios(pair) => {
            let (a, b) = *pair;
            if b.numerator.is_zero() {
                return Err(divide_by_zero(name));
            }
            effort::check(count_product(&a.numerator, &b.denominator))?;
            effort::check(count_product(&a.denominator, &b.numerator))?;
            let (above, below) = (&a.numerator * &b.denominator, &a.denominator * &b.numerator);
            effort::check(count_quotient(&above, &below))?;
            let quotient = match wanted {
                Division::Modulus => above.div_floor(&below),
                _ => above / below,
            };
            if wanted == Division::Quotient {
                big(quotient)
            } else {
                let (a, b) = (Value::Ratio(Arc::new(a)), Value::Ratio(Arc::new(b)));
                return subtract(&a, &multiply(&b, &big(quotient), Overflow::Promote)?, Overflow::Promote);
            }
        }
    })
}

/// The negative of a number.
pub(crate) fn negate(value: &Value, overflows: Overflow) -> Result<Value> {
    match value {
        Value::Float(value) => Ok(Value::Float(-value)),
        value if is_number(value) => subtract(&Value::Integer(0), value, overflows),
        other => Err(not_a_number("-", other)),
    }
}

/// Returns -1, 0 or 1; `None` for NaN.
pub(crate) fn sign(value: &Value) -> Option<i8> {
    match value {
        Value::Integer(value) => Some(value.signum() as i8),
        Value::Float(value) if value.is_nan() => None,
        Value::Float(value) if *value == 0.0 => Some(0),
        Value::Float(value) => Some(value.signum() as i8),
        Value::BigInteger(value) => value.signum().to_i8(),
        Value::Ratio(value) => value.numerator.signum().to_i8(),
        _ => None,
    }
}

/// `<`, `>` and `==`: by value. `None` if one of them is NaN.
pub(crate) fn numeric_order(a: &Value, b: &Value) -> Option<Ordering> {
    match pair("", a, b).ok()? {
        Pair::Integers(a, b) => Some(a.cmp(&b)),
        Pair::Floats(a, b) => a.partial_cmp(&b),
        Pair::Big(a, b) => {
            count_sum(&a, &b);
            Some((*a).cmp(&*b))
        }
        Pair::Ratios(pair) => Some(pair.0.order(&pair.1)),
    }
}

/// `<`, `>`, `<=` or `>=`, according to the name.
pub(crate) fn compare_numbers(name: &str, a: &Value, b: &Value) -> Result<Option<Ordering>> {
    if let (Value::Integer(a), Value::Integer(b)) = (a, b) {
        return Ok(Some(a.cmp(b)));
    }
    if !is_number(a) || !is_number(b) {
        return Err(not_numbers(name, a, b));
    }
    Ok(numeric_order(a, b))
}

/// `=` of two numbers: only integers with integers, ratios with ratios and doubles with doubles.
pub(crate) fn same_kind_equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Float(a), Value::Float(b)) => a == b,
        (Value::Float(_), _) | (_, Value::Float(_)) => false,
        (Value::Ratio(a), Value::Ratio(b)) => {
            count_sum(&a.numerator, &a.denominator);
            a == b
        }
        _ => numeric_order(a, b) == Some(Ordering::Equal),
    }
}

/// The order of numbers as keys: by value, exactly; of equal ones integer, ratio, double; NaN last.
pub(super) fn total_order(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Integer(a), Value::Integer(b)) => a.cmp(b),
        (Value::Float(a), Value::Float(b)) => match (a.is_nan(), b.is_nan()) {
            (false, false) => a.partial_cmp(b).unwrap_or(Ordering::Equal),
            (a, b) => a.cmp(&b),
        },
        (Value::Float(float), exact) => order_of_float(*float, exact),
        (exact, Value::Float(float)) => order_of_float(*float, exact).reverse(),
        _ => numeric_order(a, b).unwrap_or(Ordering::Equal),
    }
}

/// Compares a double with an exact number, without rounding the exact one. Of equal values the double is
/// last.
fn order_of_float(float: f64, exact: &Value) -> Ordering {
    if float.is_nan() || float == f64::INFINITY {
        return Ordering::Greater;
    }
    if float == f64::NEG_INFINITY {
        return Ordering::Less;
    }
    let float = match num_rational(float) {
        Ok(ratio) => Value::Ratio(Arc::new(ratio)),
        Err(whole) => integer(whole),
    };
    numeric_order(&float, exact).unwrap_or(Ordering::Equal).then(Ordering::Greater)
}

/// Returns a finite double as its exact fraction or integer.
pub(crate) fn num_rational(float: f64) -> Result<Ratio, BigInt> {
    let bits = float.to_bits();
    let exponent = i32::try_from((bits >> 52) & 0x7ff).unwrap_or(0);
    let fraction = bits & 0x000f_ffff_ffff_ffff;
    let (mantissa, exponent) =
        if exponent == 0 { (fraction, -1074) } else { (fraction | 0x0010_0000_0000_0000, exponent - 1075) };
    let mut mantissa = BigInt::from(mantissa);
    if float.is_sign_negative() {
        mantissa = -mantissa;
    }
    let shift = exponent.unsigned_abs();
    if exponent >= 0 { Err(mantissa << shift) } else { Ratio::reduce(mantissa, BigInt::from(1) << shift) }
}

/// Returns the number of bits of a number, for the limit on number size. 0 for the kinds of fixed size.
pub(crate) fn bits(value: &Value) -> u64 {
    match value {
        Value::BigInteger(value) => value.bits(),
        Value::Ratio(value) => value.numerator.bits().max(value.denominator.bits()),
        _ => 0,
    }
}
