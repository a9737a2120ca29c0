//! Number literals in Clojure's notation.
//!
//! Longs in decimal, `0x` hexadecimal, `0` octal and `2r`..`36r`; integers that do not fit are big integers,
//! as is any with the suffix `N`; ratios; doubles. Clojure's decimals (`1.5M`) are refused with a hint,
//! because this language has no decimal type and reading one as a double would silently change its meaning.

use std::sync::Arc;

use num_bigint::BigInt;
use num_integer::Integer as _;
use num_traits::{One, ToPrimitive, Zero};

use super::form::FormKind;
use crate::error::{Error, ErrorKind, Result};

/// Reads a token that begins with a digit, or with a sign and a digit.
pub(super) fn read_number(token: &str, max_digits: usize) -> Result<FormKind> {
    if token.len() > max_digits {
        let length = token.len();
        let message = format!("a number of {length} characters is longer than the {max_digits} allowed");
        return Err(Error::new(ErrorKind::NumberSizeExceeded, message));
    }
    let (negative, digits) = match token.as_bytes() {
        [b'-', ..] => (true, &token[1..]),
        [b'+', ..] => (false, &token[1..]),
        _ => (false, token),
    };
    if let Some(small) = read_small(digits) {
        return Ok(FormKind::Integer(if negative { -small } else { small }));
    }
    if let Some(integer) = read_integer(digits, negative) {
        return Ok(integer);
    }
    if let Some((numerator, denominator)) = digits.split_once('/')
        && all_digits(numerator)
        && all_digits(denominator)
    {
        return read_ratio(numerator, denominator, negative);
    }
    if let Some(double) = read_double(digits) {
        return Ok(FormKind::Double(if negative { -double } else { double }));
    }
    Err(refusal(token, digits))
}

/// Reads decimal digits without a leading zero that certainly fit 64 bits: nearly every number.
fn read_small(digits: &str) -> Option<i64> {
    let bytes = digits.as_bytes();
    if bytes.len() > 18 || (bytes.len() > 1 && bytes[0] == b'0') {
        return None;
    }
    bytes.iter().try_fold(0i64, |sum, &byte| byte.is_ascii_digit().then(|| sum * 10 + i64::from(byte - b'0')))
}

fn all_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn read_integer(digits: &str, negative: bool) -> Option<FormKind> {
    // In base 36 an `N` is a digit, so a radix literal has no suffix.
    let radix = radix_literal(digits);
    let (magnitude, big) = match (radix, digits.strip_suffix('N')) {
        (Some(magnitude), _) => (magnitude, false),
        (None, Some(rest)) => (plain_literal(rest)?, true),
        (None, None) => (plain_literal(digits)?, false),
    };
    let value = if negative { -magnitude } else { magnitude };
    Some(if big { FormKind::BigInteger(Arc::new(value)) } else { integer(value) })
}

fn integer(value: BigInt) -> FormKind {
    match value.to_i64() {
        Some(small) => FormKind::Integer(small),
        None => FormKind::BigInteger(Arc::new(value)),
    }
}

fn plain_literal(digits: &str) -> Option<BigInt> {
    let (radix, digits) = match digits.as_bytes() {
        [b'0'] => (10, digits),
        [b'0', b'x' | b'X', ..] => (16, &digits[2..]),
        [b'0', ..] => (8, &digits[1..]),
        _ => (10, digits),
    };
    parse_radix(digits, radix)
}

fn radix_literal(digits: &str) -> Option<BigInt> {
    let at = digits.find(['r', 'R']).filter(|&at| at == 1 || at == 2)?;
    let radix: u32 = digits[..at].parse().ok().filter(|_| !digits.starts_with('0'))?;
    (2..=36).contains(&radix).then(|| parse_radix(&digits[at + 1..], radix))?
}

fn parse_radix(digits: &str, radix: u32) -> Option<BigInt> {
    // The number parser accepts signs and underscores; the language does not.
    let valid = !digits.is_empty() && digits.chars().all(|digit| digit.is_digit(radix));
    valid.then(|| BigInt::parse_bytes(digits.as_bytes(), radix))?
}

fn read_ratio(numerator: &str, denominator: &str, negative: bool) -> Result<FormKind> {
    let parse = |digits| parse_radix(digits, 10).unwrap_or_default();
    let (mut numerator, denominator) = (parse(numerator), parse(denominator));
    if denominator.is_zero() {
        return Err(Error::new(ErrorKind::Parse, "a ratio with a denominator of zero"));
    }
    if negative {
        numerator = -numerator;
    }
    let common = numerator.gcd(&denominator);
    let (numerator, denominator) = (numerator / &common, denominator / common);
    if !denominator.is_one() {
        return Ok(FormKind::Ratio(Arc::new((numerator, denominator))));
    }
    Ok(integer(numerator))
}

fn read_double(digits: &str) -> Option<f64> {
    let bytes = digits.as_bytes();
    let mut at = bytes.iter().take_while(|byte| byte.is_ascii_digit()).count();
    // Without a point or an exponent these are digits that are not an integer, such as `08`.
    if at == 0 || at == bytes.len() {
        return None;
    }
    if bytes.get(at) == Some(&b'.') {
        at += 1;
        at += bytes[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    }
    if let Some(b'e' | b'E') = bytes.get(at) {
        at += 1;
        if let Some(b'+' | b'-') = bytes.get(at) {
            at += 1;
        }
        let exponent = bytes[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        if exponent == 0 {
            return None;
        }
        at += exponent;
    }
    if at < bytes.len() { None } else { digits.parse().ok() }
}

fn refusal(token: &str, digits: &str) -> Error {
    let error = Error::new(ErrorKind::Parse, format!("`{token}` is not a number"));
    if let Some(decimal) = token.strip_suffix('M') {
        let point = if decimal.contains(['.', 'e', 'E']) { "" } else { ".0" };
        let message = format!("`{token}`: there are no decimals with the suffix M");
        let hint = format!("write the double `{decimal}{point}`, or a ratio such as `15/10`, which is exact");
        return Error::new(ErrorKind::Unsupported, message).hint(hint);
    }
    if digits.starts_with('0') && all_digits(digits) {
        return error
            .hint("a leading 0 makes an octal number, which has no digit 8 or 9: drop the leading zeros");
    }
    if digits.contains('_') {
        return error.hint("digits are not grouped with `_`");
    }
    error.hint("a name does not begin with a digit")
}
