//! One `%...` directive of a format string.

use num_bigint::BigInt;
use num_traits::Signed;

use super::decimal::Decimal;
use crate::error::{Error, ErrorKind, Result};
use crate::value::Value;
use crate::value::integers::count_digits;

/// The argument that a directive takes.
#[derive(Clone, Copy, Default)]
pub(super) enum Index {
    #[default]
    Next,
    Same,
    Explicit(usize),
}

impl Index {
    pub(super) fn resolve(self, next: &mut usize, last: Option<usize>) -> Result<usize> {
        match self {
            Index::Next => {
                *next += 1;
                Ok(*next - 1)
            }
            Index::Same => {
                last.ok_or_else(|| Error::argument("format: `%<` has no argument before it to repeat"))
            }
            Index::Explicit(index) => Ok(index),
        }
    }
}

#[derive(Default)]
pub(super) struct Directive<'a> {
    pub(super) text: &'a str,
    pub(super) index: Index,
    pub(super) width: Option<usize>,
    pub(super) precision: Option<usize>,
    pub(super) conversion: char,
    /// The letter after `%t`.
    pub(super) part: char,
    left: bool,
    plus: bool,
    space: bool,
    zero: bool,
    group: bool,
    parentheses: bool,
    alternate: bool,
}

impl<'a> Directive<'a> {
    /// Parses the directive at the start of a text. Also returns its length.
    pub(super) fn parse(text: &'a str) -> Result<(Self, usize)> {
        let bytes = text.as_bytes();
        let mut at = 1;
        let mut directive = Directive { text, ..Directive::default() };
        let digits = digit_count(&bytes[at..]);
        if digits > 0 && bytes.get(at + digits) == Some(&b'$') {
            let number: usize = text[at..at + digits].parse().unwrap_or(0);
            directive.index = Index::Explicit(
                number.checked_sub(1).ok_or_else(|| invalid(text, "arguments are counted from 1"))?,
            );
            at += digits + 1;
        } else if bytes.get(at) == Some(&b'<') {
            directive.index = Index::Same;
            at += 1;
        }
        while let Some(flag) = bytes.get(at) {
            let flag = match flag {
                b'-' => &mut directive.left,
                b'+' => &mut directive.plus,
                b' ' => &mut directive.space,
                b'0' => &mut directive.zero,
                b',' => &mut directive.group,
                b'(' => &mut directive.parentheses,
                b'#' => &mut directive.alternate,
                _ => break,
            };
            *flag = true;
            at += 1;
        }
        let digits = digit_count(&bytes[at..]);
        if digits > 0 {
            directive.width = Some(text[at..at + digits].parse().unwrap_or(usize::MAX));
            at += digits;
        }
        if bytes.get(at) == Some(&b'.') {
            let digits = digit_count(&bytes[at + 1..]);
            if digits == 0 {
                return Err(invalid(text, "a precision has digits"));
            }
            directive.precision = Some(text[at + 1..at + 1 + digits].parse().unwrap_or(usize::MAX));
            at += 1 + digits;
        }
        let Some(conversion) = text[at..].chars().next() else {
            return Err(invalid(text, "it ends before its conversion"));
        };
        let mut end = at + conversion.len_utf8();
        if let 't' | 'T' = conversion {
            let Some(part) = text[end..].chars().next() else {
                return Err(invalid(text, "`t` is followed by the part of a date"));
            };
            directive.part = part;
            end += part.len_utf8();
        }
        directive.text = &text[..end];
        directive.conversion = conversion;
        directive.check()?;
        Ok((directive, end))
    }

    fn check(&self) -> Result<()> {
        match self.conversion {
            's' | 'S' | 'd' | 'f' | 'e' | 'E' | 'g' | 'G' | 'x' | 'X' | 'o' | 'b' | 'B' | 'c' | 'C' | 'h'
            | 'H' | 't' | 'T' | 'n' | '%' => {}
            'a' | 'A' => {
                let message = format!("format: there is no `{}`", self.text);
                return Err(Error::new(ErrorKind::Unsupported, message)
                    .hint("make the text with `str` and give it to `%s`"));
            }
            _ => {
                let message = format!("format: unknown conversion `{}`", self.text);
                return Err(Error::argument(message).hint("a percent sign is written `%%`"));
            }
        }
        if (self.left || self.zero) && self.width.is_none() && self.conversion != 'n' {
            return Err(invalid(self.text, "the flags `-` and `0` need a width"));
        }
        if (self.left && self.zero) || (self.plus && self.space) {
            return Err(invalid(self.text, "these flags exclude each other"));
        }
        if self.precision.is_some()
            && matches!(self.conversion, 'd' | 'x' | 'X' | 'o' | 'c' | 'C' | '%' | 'n')
        {
            return Err(invalid(self.text, "it has no precision"));
        }
        Ok(())
    }

    /// Truncates a text to the precision.
    pub(super) fn cut(&self, text: &str) -> String {
        match self.precision {
            Some(precision) => text.chars().take(precision).collect(),
            None => text.to_owned(),
        }
    }

    /// Pads a text with spaces to the width.
    pub(super) fn pad(&self, text: String) -> String {
        let missing = self.width.unwrap_or(0).saturating_sub(text.chars().count());
        match missing {
            0 => text,
            _ if self.left => text + &" ".repeat(missing),
            _ => " ".repeat(missing) + &text,
        }
    }

    /// Converts the text to uppercase if the conversion is uppercase.
    pub(super) fn capitals(&self, text: String) -> String {
        if self.conversion.is_ascii_uppercase() { text.to_uppercase() } else { text }
    }

    /// Formats an integer in decimal digits.
    pub(super) fn integer(&self, value: &Value) -> Option<String> {
        let (negative, digits) = match value {
            Value::Integer(value) => (*value < 0, value.unsigned_abs().to_string()),
            Value::BigInteger(value) if count_digits(value.bits()) => return None,
            Value::BigInteger(value) => (value.is_negative(), value.abs().to_string()),
            _ => return None,
        };
        Some(self.signed(negative, &digits, ""))
    }

    /// Formats an integer in hexadecimal or octal digits; a negative one of 64 bits as its two's complement.
    pub(super) fn radix(&self, value: &Value) -> Option<String> {
        let radix = if self.conversion == 'o' { 8 } else { 16 };
        let (negative, digits) = match value {
            Value::Integer(value) if radix == 8 => (false, format!("{value:o}")),
            Value::Integer(value) => (false, format!("{value:x}")),
            Value::BigInteger(value) if count_digits(value.bits()) => return None,
            Value::BigInteger(value) => (value.is_negative(), BigInt::to_str_radix(&value.abs(), radix)),
            _ => return None,
        };
        let prefix = match (self.alternate, radix) {
            (true, 16) => "0x",
            (true, _) => "0",
            _ => "",
        };
        let sign = if negative { "-" } else { "" };
        let length = digits.len() + prefix.len() + sign.len();
        let zeros = if self.zero { self.width.unwrap_or(0).saturating_sub(length) } else { 0 };
        Some(self.pad(format!("{sign}{prefix}{}{digits}", "0".repeat(zeros))))
    }

    /// Formats a double in the notation of the conversion.
    pub(super) fn float(&self, value: f64) -> String {
        let negative = value.is_sign_negative() && !value.is_nan();
        if !value.is_finite() {
            let word = if value.is_nan() { "NaN" } else { "Infinity" };
            let plain = Directive { zero: false, group: false, ..*self };
            return plain.signed(negative, word, "");
        }
        let decimal = Decimal::of(value.abs());
        let precision = self.precision.unwrap_or(6);
        let scientific = |precision| {
            let (digits, exponent) = decimal.scientific(precision);
            let sign = if exponent < 0 { '-' } else { '+' };
            (digits, format!("e{sign}{:02}", exponent.unsigned_abs()))
        };
        let (digits, exponent) = match self.conversion.to_ascii_lowercase() {
            'e' => scientific(precision),
            'g' => {
                let precision = precision.max(1);
                match decimal.rounded_exponent(precision) {
                    None => (decimal.fixed(precision - 1), String::new()),
                    Some(exponent) if exponent >= -4 && exponent < precision as i64 => {
                        let places = precision as i64 - 1 - exponent;
                        (decimal.fixed(usize::try_from(places).unwrap_or(0)), String::new())
                    }
                    Some(_) => scientific(precision - 1),
                }
            }
            _ => (decimal.fixed(precision), String::new()),
        };
        self.signed(negative, &digits, &exponent)
    }

    /// Adds sign, grouping and padding to the digits of a number.
    fn signed(&self, negative: bool, digits: &str, exponent: &str) -> String {
        let (whole, fraction) =
            digits.split_once('.').map_or((digits, None), |(whole, rest)| (whole, Some(rest)));
        let (before, after) = match negative {
            true if self.parentheses => ("(", ")"),
            true => ("-", ""),
            false if self.plus => ("+", ""),
            false if self.space => (" ", ""),
            false => ("", ""),
        };
        let mut body = if self.group { grouped(whole) } else { whole.to_owned() };
        if let Some(fraction) = fraction {
            body.push('.');
            body.push_str(fraction);
        }
        body.push_str(exponent);
        if self.zero {
            let length = before.len() + body.len() + after.len();
            body.insert_str(0, &"0".repeat(self.width.unwrap_or(0).saturating_sub(length)));
        }
        self.pad(format!("{before}{body}{after}"))
    }
}

/// Adds a comma before each group of three digits.
fn grouped(digits: &str) -> String {
    let mut out = String::with_capacity(digits.len() * 4 / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

fn digit_count(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|byte| byte.is_ascii_digit()).count()
}

fn invalid(directive: &str, reason: &str) -> Error {
    let shown: String = directive.chars().take(20).collect();
    Error::argument(format!("format: `{shown}`: {reason}"))
}
