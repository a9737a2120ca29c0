//! Exact fractions.

use num_bigint::BigInt;
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

    /// The nearest double.
    pub fn to_f64(&self) -> f64 {
        let (above, below) = (self.numerator.to_f64(), self.denominator.to_f64());
        if let (Some(above), Some(below)) = (above, below)
            && above.abs() < 9.0e15
            && below < 9.0e15
        {
            // Both are exact, so the quotient is rounded once.
            return above / below;
        }
        // Scale the quotient to 64 significant bits and divide as integers, so that huge parts do not overflow.
        let shift = 64 + i64::try_from(self.denominator.bits()).unwrap_or(i64::MAX)
            - i64::try_from(self.numerator.bits()).unwrap_or(i64::MAX);
        let quotient = if shift >= 0 {
            (&self.numerator << shift.unsigned_abs()) / &self.denominator
        } else {
            &self.numerator / (&self.denominator << shift.unsigned_abs())
        };
        let scale = i32::try_from(-shift).unwrap_or(if shift > 0 { i32::MIN } else { i32::MAX });
        let value = quotient.to_f64().unwrap_or(f64::NAN);
        // Two steps, because a single power of two may leave the range of doubles where the result does not.
        let half = scale / 2;
        value * 2f64.powi(half) * 2f64.powi(scale - half)
    }

    /// The integer nearest to zero on the way from the fraction, as `long` gives it.
    pub fn truncate(&self) -> BigInt {
        &self.numerator / &self.denominator
    }
}
