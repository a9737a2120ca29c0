//! Exact fractions.

use std::cmp::Ordering;

use num_bigint::{BigInt, BigUint};
use num_integer::Integer;
use num_traits::{One, Signed, ToPrimitive};

/// A fraction in lowest terms. The denominator is positive and at least 2.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ratio {
    /// Above the line.
    pub numerator: BigInt,
    /// Below the line.
    pub denominator: BigInt,
}

impl Ratio {
    /// The fraction in lowest terms, or the integer it is. The denominator must not be zero.
    pub fn reduce(numerator: BigInt, denominator: BigInt) -> Result<Ratio, BigInt> {
        let divisor = numerator.gcd(&denominator);
        let sign = if denominator.is_negative() { -BigInt::one() } else { BigInt::one() };
        let numerator = numerator / &divisor * &sign;
        let denominator = denominator / &divisor * sign;
        if denominator.is_one() { Err(numerator) } else { Ok(Ratio { numerator, denominator }) }
    }

    /// The double that Clojure makes of it: the quotient is rounded to 16 decimal digits, half to even, and what that
    /// says to the nearest double. It may be next to the nearest double of the fraction itself.
    pub fn to_f64(&self) -> f64 {
        let bits = |number: &BigInt| number.bits() as f64;
        let magnitude = (bits(&self.numerator) - bits(&self.denominator)) * std::f64::consts::LOG10_2;
        // The power of ten that leaves 16 digits before the point. It is a guess that may be off by one.
        let mut scale = 16 - magnitude.floor() as i32;
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

    /// The integer nearest to zero on the way from the fraction, as `long` gives it.
    pub fn truncate(&self) -> BigInt {
        &self.numerator / &self.denominator
    }
}
