//! Operations on large integers: their costs, and the greatest common divisor.
//!
//! The costs are those of the schoolbook methods, in words of 64 bits; the actual methods are no slower. Each
//! operation counts its cost before it begins, so that it is not begun if the fuel does not suffice: see
//! [`crate::effort`].

use num_bigint::{BigInt, BigUint};
use num_traits::{ToPrimitive, Zero};

use crate::effort::{LIMB, touch};

/// Returns the number of words of a number, at least one.
fn limbs(bits: u64) -> usize {
    usize::try_from(bits / 64).unwrap_or(usize::MAX).saturating_add(1)
}

/// Counts an operation that reads each word of two numbers once, such as a sum. Returns true if it must not
/// be done.
pub(crate) fn count_sum(a: &BigInt, b: &BigInt) -> bool {
    let longer = limbs(a.bits()).max(limbs(b.bits()));
    longer > 1 && touch(longer.saturating_mul(LIMB))
}

/// Counts a product. Returns true if it must not be done.
pub(crate) fn count_product(a: &BigInt, b: &BigInt) -> bool {
    count_product_of_bits(a.bits(), b.bits())
}

fn count_product_of_bits(a: u64, b: u64) -> bool {
    touch(limbs(a).saturating_mul(limbs(b)).saturating_mul(LIMB))
}

/// Counts a division. Returns true if it must not be done.
pub(crate) fn count_quotient(a: &BigInt, b: &BigInt) -> bool {
    let (above, below) = (limbs(a.bits()), limbs(b.bits()));
    let steps = above.saturating_sub(below).saturating_add(1);
    touch(steps.saturating_mul(below).saturating_add(above).saturating_mul(2 * LIMB))
}

/// Counts writing a number in decimal digits or reading it. Returns true if it must not be done.
pub(crate) fn count_digits(bits: u64) -> bool {
    let words = limbs(bits);
    touch(words.saturating_mul(words).saturating_mul(2 * LIMB))
}

/// Counts reading a number of `digits` decimal digits. Returns true if it must not be done.
pub(crate) fn count_reading(digits: usize) -> bool {
    count_digits((digits as u64).saturating_mul(10) / 3)
}

/// Returns the greatest common divisor of two numbers that are not both zero. Lehmer's method: quotients are
/// found from the leading words, and the long numbers are multiplied only once for each thirty bits or so.
pub(crate) fn greatest_common_divisor(a: &BigUint, b: &BigUint) -> BigUint {
    let (mut a, mut b) = if a >= b { (a.clone(), b.clone()) } else { (b.clone(), a.clone()) };
    if !b.is_zero() && a.bits() > b.bits() {
        let next = remainder(&a, &b);
        (a, b) = (b, next);
    }
    // Each round multiplies both numbers by words, four products in all, and shortens them by half a word.
    let words = limbs(b.bits());
    if words > 1 && touch(words.saturating_mul(words).saturating_mul(12 * LIMB)) {
        return a;
    }
    while b.bits() > 62 {
        match leading_steps(&a, &b) {
            Some([[aa, ab], [ba, bb]]) => {
                let first = combined(&a, aa, &b, ab);
                let second = combined(&a, ba, &b, bb);
                (a, b) = (first, second);
            }
            None => {
                let next = &a % &b;
                (a, b) = (b, next);
            }
        }
    }
    let Some(small) = b.to_u64().filter(|small| *small > 0) else { return a };
    let rest = (&a % small).to_u64().unwrap_or(0);
    BigUint::from(num_integer::gcd(small, rest))
}

fn remainder(a: &BigUint, b: &BigUint) -> BigUint {
    let (above, below) = (limbs(a.bits()), limbs(b.bits()));
    let steps = above.saturating_sub(below).saturating_add(1);
    if touch(steps.saturating_mul(below).saturating_add(above).saturating_mul(2 * LIMB)) {
        return BigUint::zero();
    }
    a % b
}

/// Returns the steps of Euclid's method that the leading 62 bits of two numbers determine, as factors of
/// both.
fn leading_steps(a: &BigUint, b: &BigUint) -> Option<[[i64; 2]; 2]> {
    let shift = a.bits().saturating_sub(62);
    let mut x = i128::from((a >> shift).to_i64()?);
    let mut y = i128::from((b >> shift).to_i64()?);
    let (mut first, mut second) = ([1i128, 0i128], [0i128, 1i128]);
    while y + second[0] != 0 && y + second[1] != 0 {
        // Both bounds of the quotient must agree.
        let quotient = (x + first[0]) / (y + second[0]);
        if quotient != (x + first[1]) / (y + second[1]) {
            break;
        }
        let next = [first[0] - quotient * second[0], first[1] - quotient * second[1]];
        let small = |factor: i128| factor.unsigned_abs() < 1 << 62;
        if !small(next[0]) || !small(next[1]) {
            break;
        }
        (first, second) = (second, next);
        (x, y) = (y, x - quotient * y);
    }
    if first[1] == 0 {
        return None;
    }
    let word = |factor: i128| i64::try_from(factor).ok();
    Some([[word(first[0])?, word(first[1])?], [word(second[0])?, word(second[1])?]])
}

/// Returns `a * of_a + b * of_b`, which is known not to be negative. One of the factors is not positive.
fn combined(a: &BigUint, of_a: i64, b: &BigUint, of_b: i64) -> BigUint {
    let (left, right) = (a * of_a.unsigned_abs(), b * of_b.unsigned_abs());
    if of_a < 0 {
        right - left
    } else if of_b < 0 {
        left - right
    } else {
        left + right
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use num_integer::Integer as _;

    #[test]
    fn the_divisor_is_that_of_the_plain_method() {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut random = |words: u32| {
            let mut number = BigUint::zero();
            for _ in 0..words {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                number = (number << 64) + state;
            }
            number
        };
        for round in 0..400u32 {
            let common = random(round % 5);
            let (a, b) = (random(1 + round % 37) * &common, random(round % 23) * &common);
            if a.is_zero() && b.is_zero() {
                continue;
            }
            assert_eq!(greatest_common_divisor(&a, &b), a.gcd(&b), "{a} and {b}");
        }
        let (mut a, mut b) = (BigUint::from(1u8), BigUint::from(1u8));
        for _ in 0..2000 {
            (a, b) = (&a + &b, a);
        }
        assert_eq!(greatest_common_divisor(&a, &b), BigUint::from(1u8));
        assert_eq!(greatest_common_divisor(&a, &BigUint::zero()), a);
        assert_eq!(greatest_common_divisor(&BigUint::zero(), &a), a);
    }
}
