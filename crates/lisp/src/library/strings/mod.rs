//! Text: `clojure.string`, the functions of `clojure.core` on names and text, and the methods of Java's
//! String.
//!
//! Lengths and indices are Java's: UTF-16 code units. An index inside a character of two units is refused,
//! because no string here can hold half a character. Functions that Clojure applies to `(.toString s)` take
//! any value but `nil`; the others take strings only. Replacement by a function is part of the prelude, which
//! builds on `clojure.string/match-pieces*`.

pub(super) mod case;
pub(super) mod characters;
pub(super) mod core;
mod indices;
pub(super) mod methods;
pub(super) mod replace;
pub(super) mod search;
pub(super) mod split;

use std::borrow::Cow;

use super::{CallContext, type_error};
use crate::effort::touch_bytes;
use crate::error::Result;
use crate::printer::{Style, print};
use crate::value::{Text, Value};

pub(crate) use core::print_all;

/// Reads a string argument and charges for its whole length.
pub(super) fn whole_string<'a>(function: &str, value: &'a Value) -> Result<&'a Text> {
    let text = string(function, value)?;
    touch_bytes(text.len());
    Ok(text)
}

/// Reads a string argument.
pub(super) fn string<'a>(function: &str, value: &'a Value) -> Result<&'a Text> {
    match value {
        Value::String(text) => Ok(text),
        other => Err(type_error(function, "a string", other)),
    }
}

/// Reads an argument by its `toString`, any value but `nil`, and charges for its whole length.
fn any_text<'a>(context: &CallContext<'_>, value: &'a Value) -> Result<Cow<'a, str>> {
    match value {
        Value::String(text) => {
            touch_bytes(text.len());
            Ok(Cow::Borrowed(text.as_str()))
        }
        Value::Nil => Err(type_error(context.shown(), "a string", value)),
        other => Ok(Cow::Owned(str_of(context, other)?)),
    }
}

/// Reads a search argument, a string or a character, and charges for its whole length.
fn piece<'a>(function: &str, value: &'a Value) -> Result<Cow<'a, str>> {
    match value {
        Value::String(text) => {
            touch_bytes(text.len());
            Ok(Cow::Borrowed(text.as_str()))
        }
        Value::Character(character) => Ok(Cow::Owned(character.to_string())),
        // The methods of Java also take the code of a character.
        Value::Integer(code) if function.starts_with('.') => {
            let character = u32::try_from(*code).ok().and_then(char::from_u32);
            Ok(Cow::Owned(character.unwrap_or(char::REPLACEMENT_CHARACTER).to_string()))
        }
        other => Err(type_error(function, "a string", other)),
    }
}

/// Returns the result of `str`, within the length limit of strings.
pub(super) fn str_of(context: &CallContext<'_>, value: &Value) -> Result<String> {
    let mut text = String::new();
    print(value, Style::Str, context.limits.string_bytes, &mut text)?;
    Ok(text)
}

/// Returns whether a character is white space in Java.
pub(super) fn is_space(character: char) -> bool {
    match character {
        '\u{a0}' | '\u{2007}' | '\u{202f}' | '\u{85}' => false,
        '\u{1c}'..='\u{1f}' => true,
        other => other.is_whitespace(),
    }
}
