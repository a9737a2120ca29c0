//! Characters: `char` and the predicates of Java's Character.

use crate::error::{Error, Result};
use crate::library::{Native, type_error};
use crate::value::Value;

use super::is_space;

pub(crate) const NATIVES: &[Native] = &[
    Native::unary("char", |c, a| match &a[0] {
        Value::Character(_) | Value::Integer(_) => character(c.name, &a[0]).map(Value::Character),
        other => Err(c.type_error("an integer", other)),
    }),
    Native::unary("Character/isDigit", |c, a| test(c.name, a, is_digit)),
    Native::unary("Character/isLetter", |c, a| test(c.name, a, char::is_alphabetic)),
    Native::unary("Character/isAlphabetic", |c, a| test(c.name, a, char::is_alphabetic)),
    Native::unary("Character/isLetterOrDigit", |c, a| {
        test(c.name, a, |character| character.is_alphabetic() || is_digit(character))
    }),
    Native::unary("Character/isUpperCase", |c, a| test(c.name, a, char::is_uppercase)),
    Native::unary("Character/isLowerCase", |c, a| test(c.name, a, char::is_lowercase)),
    Native::unary("Character/isWhitespace", |c, a| test(c.name, a, is_space)),
    Native::unary("Character/toUpperCase", |c, a| {
        change(c.name, a, |character| single(character.to_uppercase(), character))
    }),
    Native::unary("Character/toLowerCase", |c, a| {
        change(c.name, a, |character| single(character.to_lowercase(), character))
    }),
    Native::unary("Character/getNumericValue", |c, a| {
        let digit = character(c.name, &a[0])?.to_digit(36);
        Ok(Value::Integer(digit.map_or(-1, i64::from)))
    }),
    Native::binary("Character/digit", |c, arguments| {
        let radix = match &arguments[1] {
            Value::Integer(radix @ 2..=36) => u32::try_from(*radix).unwrap_or(10),
            other => return Err(c.type_error("a radix from 2 to 36", other)),
        };
        let digit = character(c.name, &arguments[0])?.to_digit(radix);
        Ok(Value::Integer(digit.map_or(-1, i64::from)))
    }),
];

/// Returns whether a character is a decimal digit of a script in use. Java's definition is the Unicode
/// category Nd; these are most of it.
fn is_digit(character: char) -> bool {
    character.is_ascii_digit()
        || (!character.is_ascii() && character.is_numeric() && !character.is_alphabetic())
}

/// Returns the result of a change of case, or the character itself if the result has several characters, as
/// in Java.
fn single(mut changed: impl Iterator<Item = char>, original: char) -> char {
    match (changed.next(), changed.next()) {
        (Some(only), None) => only,
        _ => original,
    }
}

fn character(function: &str, value: &Value) -> Result<char> {
    match value {
        Value::Character(character) => Ok(*character),
        Value::Integer(code) => u32::try_from(*code)
            .ok()
            .and_then(char::from_u32)
            .ok_or_else(|| Error::argument(format!("{function}: there is no character of the code {code}"))),
        other => Err(type_error(function, "a character", other)),
    }
}

fn test(function: &str, arguments: &[Value], holds: fn(char) -> bool) -> Result<Value> {
    character(function, &arguments[0]).map(|character| Value::Boolean(holds(character)))
}

fn change(function: &str, arguments: &[Value], change: fn(char) -> char) -> Result<Value> {
    character(function, &arguments[0]).map(|character| Value::Character(change(character)))
}
