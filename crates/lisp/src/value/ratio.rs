//! Exact fractions.

use std::cmp::Ordering;

use num_bigint::{BigInt, BigUint};
use num_integer::Integer;
use num_traits::{One, Signed, ToPrimitive, Zero};

use super::integers::{count_digits, count_product, count_quotient, greatest_common_divisor};

/// A fraction in lowest terms. The denominator is positive and at least 2.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ratio {
    /// Above the line.
    pub numerator: BigInt,
    /// Below the line.
    pub denominator: BigInt,
}

impl Ratio {
    /// Reduces a fraction to lowest terms, or to an integer. The denominator must not be zero.
    pub fn reduce(numerator: BigInt, denominator: BigInt) -> Result<Ratio, BigInt> {
        let divisor = common(&numerator, &denominator);
        Self::signed(divided(numerator, &divisor), divided(denominator, &divisor))
    }

    /// Creates a fraction of two numbers without a common divisor, or the integer that it equals.
    fn signed(numerator: BigInt, denominator: BigInt) -> Result<Ratio, BigInt> {
        let (numerator, denominator) =
            if denominator.is_negative() { (-numerator, -denominator) } else { (numerator, denominator) };
        if denominator.is_one() { Err(numerator) } else { Ok(Ratio { numerator, denominator }) }
    }

    /// Returns the sum. If the denominators have little in common, which is nearly always, no long divisor
    /// has to be found.
    pub(crate) fn plus(&self, other: &Ratio) -> Result<Ratio, BigInt> {
        let divisor = common(&self.denominator, &other.denominator);
        let (left, right) =
            (divided(self.denominator.clone(), &divisor), divided(other.denominator.clone(), &divisor));
        let above = times(&self.numerator, &right) + times(&other.numerator, &left);
        let rest = common(&above, &divisor);
        Self::signed(divided(above, &rest), times(&left, &divided(other.denominator.clone(), &rest)))
    }

    pub(crate) fn times(&self, other: &Ratio) -> Result<Ratio, BigInt> {
        let (one, two) =
            (common(&self.numerator, &other.denominator), common(&other.numerator, &self.denominator));
        let above = times(&divided(self.numerator.clone(), &one), &divided(other.numerator.clone(), &two));
        let below =
            times(&divided(self.denominator.clone(), &two), &divided(other.denominator.clone(), &one));
        Self::signed(above, below)
    }

    pub(crate) fn negated(&self) -> Ratio {
        Ratio { numerator: -&self.numerator, denominator: self.denominator.clone() }
    }

    /// Returns the reciprocal. The numerator must not be zero.
    pub(crate) fn inverted(&self) -> Ratio {
        if self.numerator.is_negative() {
            Ratio { numerator: -&self.denominator, denominator: -&self.numerator }
        } else {
            Ratio { numerator: self.denominator.clone(), denominator: self.numerator.clone() }
        }
    }

    /// Compares by value.
    pub(crate) fn order(&self, other: &Ratio) -> Ordering {
        let size = |ratio: &Ratio| ratio.numerator.bits() as i64 - ratio.denominator.bits() as i64;
        let by_sign = self.numerator.sign().cmp(&other.numerator.sign());
        if by_sign != Ordering::Equal {
            return by_sign;
        }
        // A difference of more than a bit in size decides without a product.
        if (size(self) - size(other)).abs() > 2 {
            let by_size = size(self).cmp(&size(other));
            return if self.numerator.is_negative() { by_size.reverse() } else { by_size };
        }
        if count_product(&self.numerator, &other.denominator)
            || count_product(&other.numerator, &self.denominator)
        {
            return Ordering::Equal;
        }
        (&self.numerator * &other.denominator).cmp(&(&other.numerator * &self.denominator))
    }

    /// Converts to a double as Clojure does: the quotient is rounded to 16 decimal digits, half to even, and
    /// the result to the nearest double. It may be next to the nearest double of the fraction itself.
    pub fn to_f64(&self) -> f64 {
        let bits = |number: &BigInt| number.bits() as f64;
        let magnitude = (bits(&self.numerator) - bits(&self.denominator)) * std::f64::consts::LOG10_2;
        // The power of ten that leaves 16 digits before the point. It is a guess that may be off by one.
        let mut scale = 16 - magnitude.floor() as i32;
        // A power of ten, a product and a quotient, each about as long as the longer of the two.
        let longest = self.numerator.bits().max(self.denominator.bits());
        if longest > 128 && count_digits(longest) {
            return f64::NAN;
        }
        let numerator = self.numerator.magnitude();
        let denominator = self.denominator.magnitude();
        let digits = loop {
            let power = BigUint::from(10u8).pow(scale.unsigned_abs());
            let (above, below) = if scale >= 0 {
                (numerator * power, denominator.clone())
            } else {
                (numerator.clone(), denominator * power)
            };
            let (quotient, rest) = above.div_rem(&below);
            match quotient.to_u64() {
                Some(digits @ 1_000_000_000_000_000..10_000_000_000_000_000) => {
                    let up = match (rest * 2u8).cmp(&below) {
                        Ordering::Less => false,
                        Ordering::Equal => digits % 2 == 1,
                        Ordering::Greater => true,
                    };
                    break digits + u64::from(up);
                }
                Some(digits) if digits < 1_000_000_000_000_000 => scale += 1,
                _ => scale -= 1,
            }
        };
        let sign = if self.numerator.is_negative() { "-" } else { "" };
        format!("{sign}{digits}e{}", -scale).parse().unwrap_or(f64::NAN)
    }

    /// Rounds towards zero, as `long` does.
    pub fn truncate(&self) -> BigInt {
        if count_quotient(&self.numerator, &self.denominator) {
            return BigInt::ZERO;
        }
        &self.numerator / &self.denominator
    }
}

/// Returns the greatest common divisor, which is not negative.
fn common(a: &BigInt, b: &BigInt) -> BigInt {
    if a.magnitude().is_one() || b.magnitude().is_one() {
        return BigInt::one();
    }
    match greatest_common_divisor(a.magnitude(), b.magnitude()) {
        // Only if the work was given up.
        zero if zero.is_zero() => BigInt::one(),
        divisor => BigInt::from(divisor),
    }
}

/// Returns the exact quotient by a positive divisor.
fn divided(number: BigInt, divisor: &BigInt) -> BigInt {
    if divisor.is_one() || count_quotient(&number, divisor) { number } else { number / divisor }
}

fn times(a: &BigInt, b: &BigInt) -> BigInt {
    if count_product(a, b) { BigInt::one() } else { a * b }
}
