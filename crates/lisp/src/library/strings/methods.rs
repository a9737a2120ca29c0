//! The methods of Java's String, and its static functions.

use super::case::trimmed;
use super::core::{substring, to_string};
use super::indices::{byte_of, index, out_of_bounds};
use super::replace::plain;
use super::search::{first_index, last_index};
use super::split::{join, split_by, strings};
use super::{is_space, piece, string, whole_string};
use crate::error::{Error, Result};
use crate::library::regex::{Replacement, Times, make_pattern, replace_matches, whole_match};
use crate::library::{Arity, CallContext, Native, Realise};
use crate::value::{Cursor, CursorStep, Value, equal};

const DEEP: &[Realise] = &[Realise::Deep];

pub(crate) const NATIVES: &[Native] = &[
    Native::unary(".length", |c, a| Ok(Value::Integer(string(c.name, &a[0])?.units() as i64))),
    Native::leaf(".isEmpty", Arity::exactly(1), &[Realise::Next], is_empty),
    Native::unary(".isBlank", |c, a| Ok(Value::Boolean(whole_string(c.name, &a[0])?.chars().all(is_space)))),
    Native::leaf(".contains", Arity::exactly(2), DEEP, |c, a| {
        if let Some(found) = place_of(&a[0], &a[1], Direction::Forwards) {
            return Ok(Value::Boolean(found >= 0));
        }
        if let Value::Set(set) = &a[0] {
            return Ok(Value::Boolean(set.contains(&a[1])));
        }
        let (text, wanted) = (whole_string(c.name, &a[0])?, whole_string(c.name, &a[1])?);
        Ok(Value::Boolean(text.contains(wanted.as_str())))
    }),
    Native::leaf(".indexOf", Arity::between(2, 3), DEEP, |c, a| {
        if let Some(found) = place_of(&a[0], &a[1], Direction::Forwards) {
            return Ok(Value::Integer(found));
        }
        first_index(c, string(".indexOf", &a[0])?, a).map(Value::Integer)
    }),
    Native::leaf(".lastIndexOf", Arity::between(2, 3), DEEP, |c, a| {
        if let Some(found) = place_of(&a[0], &a[1], Direction::Backwards) {
            return Ok(Value::Integer(found));
        }
        last_index(c, string(".lastIndexOf", &a[0])?, a).map(Value::Integer)
    }),
    Native::leaf(".substring", Arity::between(2, 3), &[], substring),
    Native::leaf(".startsWith", Arity::between(2, 3), &[], |c, a| {
        let (text, wanted) = (string(c.name, &a[0])?, whole_string(c.name, &a[1])?);
        let from = a.get(2).map_or(Ok(0), |from| index(c.name, from))?;
        // No match can start beyond either end.
        let inside = from >= 0 && from <= i64::try_from(text.units()).unwrap_or(i64::MAX);
        let rest = if inside {
            &text[byte_of(c.name, text, from)?..]
        } else {
            return Ok(Value::Boolean(false));
        };
        Ok(Value::Boolean(rest.starts_with(wanted.as_str())))
    }),
    Native::binary(".endsWith", |c, a| {
        let (text, wanted) = (string(c.name, &a[0])?, whole_string(c.name, &a[1])?);
        Ok(Value::Boolean(text.ends_with(wanted.as_str())))
    }),
    Native::unary(".trim", |c, a| {
        // Java's `trim` tests the character code, not the white-space property.
        trimmed(c, a, |text| text.trim_matches(|character: char| character <= ' '))
    }),
    Native::unary(".strip", |c, a| trimmed(c, a, |text| text.trim_matches(is_space))),
    Native::unary(".toUpperCase", |c, a| c.string(whole_string(c.name, &a[0])?.to_uppercase())),
    Native::unary(".toLowerCase", |c, a| c.string(whole_string(c.name, &a[0])?.to_lowercase())),
    Native::binary(".concat", |c, a| {
        let (text, more) = (string(c.name, &a[0])?, string(c.name, &a[1])?);
        c.text(text.len() + more.len())?;
        Ok(Value::from(format!("{}{}", text.as_str(), more.as_str())))
    }),
    Native::binary(".charAt", char_at),
    Native::binary(".codePointAt", |c, a| match char_at(c, a)? {
        Value::Character(character) => Ok(Value::Integer(i64::from(u32::from(character)))),
        other => Ok(other),
    }),
    Native::binary(".repeat", |c, a| {
        let text = string(c.name, &a[0])?;
        let count = usize::try_from(index(c.name, &a[1])?)
            .map_err(|_| Error::argument(".repeat: the count is negative"))?;
        c.text(text.len().saturating_mul(count))?;
        Ok(Value::from(text.repeat(count)))
    }),
    Native::leaf(".replace", Arity::exactly(3), &[], |c, a| {
        let text = whole_string(".replace", &a[0])?;
        let (wanted, replacement) = (piece(".replace", &a[1])?, piece(".replace", &a[2])?);
        let replaced = plain(c, text, &wanted, &replacement, Times::All)?;
        c.string(replaced)
    }),
    Native::leaf(".replaceAll", Arity::exactly(3), &[], |c, a| replace_pattern(c, a, Times::All)),
    Native::leaf(".replaceFirst", Arity::exactly(3), &[], |c, a| replace_pattern(c, a, Times::Once)),
    Native::binary(".matches", |c, a| {
        let text = string(".matches", &a[0])?;
        let pattern = make_pattern(c, string(".matches", &a[1])?)?;
        Ok(Value::Boolean(whole_match(c, &pattern, text)?.is_some()))
    }),
    Native::leaf(".split", Arity::between(2, 3), &[], |c, a| {
        let text = string(".split", &a[0])?;
        let pattern = make_pattern(c, string(".split", &a[1])?)?;
        let limit = a.get(2).map_or(Ok(0), |limit| index(".split", limit))?;
        let parts = split_by(c, text, &pattern, limit)?;
        strings(c, parts)
    }),
    Native::leaf(".equals", Arity::exactly(2), DEEP, |_, a| Ok(Value::Boolean(equal(&a[0], &a[1])))),
    Native::binary(".equalsIgnoreCase", |c, a| {
        let text = whole_string(c.name, &a[0])?;
        Ok(Value::Boolean(match &a[1] {
            Value::String(_) => text.to_lowercase() == whole_string(c.name, &a[1])?.to_lowercase(),
            _ => false,
        }))
    }),
    Native::binary(".compareTo", |_, a| crate::library::compare_values(&a[0], &a[1])),
    Native::leaf(".toString", Arity::exactly(1), DEEP, to_string),
    Native::leaf("String/valueOf", Arity::exactly(1), DEEP, |c, a| match &a[0] {
        Value::Nil => c.string("null"),
        _ => to_string(c, a),
    }),
    Native::leaf("String/join", Arity::exactly(2), DEEP, join),
];

/// The direction of a search in a list.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Forwards,
    Backwards,
}

/// Returns the index of an item of a list, or -1; `None` for a value that is not a list. Every item is
/// visited, so the search costs what the declaration of its argument charges.
fn place_of(list: &Value, wanted: &Value, direction: Direction) -> Option<i64> {
    if !matches!(list, Value::Vector(_) | Value::List(_) | Value::Sequence(_) | Value::Lazy(_)) {
        return None;
    }
    let mut cursor = Cursor::new(list)?;
    let (mut at, mut found) = (0, -1);
    while let CursorStep::Item(item) = cursor.next() {
        if equal(&item, wanted) {
            found = at;
            if direction == Direction::Forwards {
                break;
            }
        }
        at += 1;
    }
    Some(found)
}

fn is_empty(context: &mut CallContext<'_>, arguments: &[Value]) -> Result<Value> {
    Ok(Value::Boolean(match &arguments[0] {
        Value::String(text) => text.is_empty(),
        Value::Vector(items) => items.is_empty(),
        Value::Map(map) => map.is_empty(),
        Value::Set(set) => set.is_empty(),
        Value::List(list) => list.is_empty(),
        Value::Sequence(_) => false,
        other => return Err(context.type_error("a string or a collection", other)),
    }))
}

fn char_at(_: &mut CallContext<'_>, arguments: &[Value]) -> Result<Value> {
    let text = string(".charAt", &arguments[0])?;
    let wanted = index(".charAt", &arguments[1])?;
    let at = byte_of(".charAt", text, wanted)?;
    text[at..].chars().next().map(Value::Character).ok_or_else(|| out_of_bounds(".charAt", text, wanted))
}

fn replace_pattern(context: &mut CallContext<'_>, arguments: &[Value], times: Times) -> Result<Value> {
    let text = string(context.name, &arguments[0])?;
    let pattern = match &arguments[1] {
        Value::String(source) => make_pattern(context, source)?,
        other => return Err(context.type_error("a pattern as a string", other)),
    };
    let replacement = Replacement::parse(string(context.name, &arguments[2])?, &pattern)?;
    let replaced = replace_matches(context, text, &pattern, &replacement, times)?;
    context.string(replaced)
}
