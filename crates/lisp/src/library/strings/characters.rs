//! Characters: `char` and the predicates of Java's Character.

use crate::error::{Error, ErrorKind, Result};
use crate::library::{Arity, Native, type_error};
use crate::value::Value;

use super::is_space;

pub(crate) const NATIVES: &[Native] = &[
    Native::leaf("char", Arity::exactly(1), &[], |_, arguments| match &arguments[0] {
        Value::Character(_) => Ok(arguments[0].clone()),
        Value::Integer(code) => match u32::try_from(*code).ok().and_then(char::from_u32) {
            Some(character) => Ok(Value::Character(character)),
            None => Err(Error::new(
                ErrorKind::InvalidArgument,
                format!("char: there is no character of the code {code}"),
            )),
        },
        other => Err(type_error("char", "an integer", other)),
    }),
    Native::leaf("Character/isDigit", Arity::exactly(1), &[], |_, a| test("Character/isDigit", a, is_digit)),
    Native::leaf("Character/isLetter", Arity::exactly(1), &[], |_, a| {
        test("Character/isLetter", a, char::is_alphabetic)
    }),
    Native::leaf("Character/isAlphabetic", Arity::exactly(1), &[], |_, a| {
        test("Character/isAlphabetic", a, char::is_alphabetic)
    }),
    Native::leaf("Character/isLetterOrDigit", Arity::exactly(1), &[], |_, a| {
        test("Character/isLetterOrDigit", a, |character| character.is_alphabetic() || is_digit(character))
    }),
    Native::leaf("Character/isUpperCase", Arity::exactly(1), &[], |_, a| {
        test("Character/isUpperCase", a, char::is_uppercase)
    }),
    Native::leaf("Character/isLowerCase", Arity::exactly(1), &[], |_, a| {
        test("Character/isLowerCase", a, char::is_lowercase)
    }),
    Native::leaf("Character/isWhitespace", Arity::exactly(1), &[], |_, a| {
        test("Character/isWhitespace", a, is_space)
    }),
    Native::leaf("Character/toUpperCase", Arity::exactly(1), &[], |_, a| {
        change("Character/toUpperCase", a, |character| single(character.to_uppercase(), character))
    }),
    Native::leaf("Character/toLowerCase", Arity::exactly(1), &[], |_, a| {
        change("Character/toLowerCase", a, |character| single(character.to_lowercase(), character))
    }),
    Native::leaf("Character/getNumericValue", Arity::exactly(1), &[], |_, arguments| {
        let digit = character("Character/getNumericValue", &arguments[0])?.to_digit(36);
        Ok(Value::Integer(digit.map_or(-1, i64::from)))
    }),
    Native::leaf("Character/digit", Arity::exactly(2), &[], |_, arguments| {
        let radix = match &arguments[1] {
            Value::Integer(radix @ 2..=36) => u32::try_from(*radix).unwrap_or(10),
            other => return Err(type_error("Character/digit", "a radix from 2 to 36", other)),
        };
        let digit = character("Character/digit", &arguments[0])?.to_digit(radix);
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
        Value::Integer(code) => u32::try_from(*code).ok().and_then(char::from_u32).ok_or_else(|| {
            Error::new(
                ErrorKind::InvalidArgument,
                format!("{function}: there is no character of the code {code}"),
            )
        }),
        other => Err(type_error(function, "a character", other)),
    }
}

fn test(function: &str, arguments: &[Value], holds: fn(char) -> bool) -> Result<Value> {
    character(function, &arguments[0]).map(|character| Value::Boolean(holds(character)))
}

fn change(function: &str, arguments: &[Value], change: fn(char) -> char) -> Result<Value> {
    character(function, &arguments[0]).map(|character| Value::Character(change(character)))
}
