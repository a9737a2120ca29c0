//! Calls without a frame: keywords, maps, sets and vectors as functions, and destructuring of sequences.

use std::sync::Arc;

use super::missed::MissedKeys;
use crate::error::{Error, ErrorKind, Result};
use crate::library::Arity;
use crate::value::{Closure, Cursor, CursorStep, LazyCell, Value};

/// Calls data as a function. The function is the first value, its arguments follow.
pub(super) fn call_data(values: &[Value], missed: &mut MissedKeys) -> Result<Value> {
    let (function, arguments) = (&values[0], &values[1..]);
    let arity = |name: &str, most: u8| Arity::between(1, most).mismatch(name, arguments.len());
    match function {
        Value::Keyword(name) => match arguments {
            [map] => {
                let found = lookup(map, function);
                missed.note_lookup(map, function, found.as_ref());
                Ok(found.unwrap_or_default())
            }
            [map, default] => Ok(lookup(map, function).unwrap_or_else(|| default.clone())),
            _ => Err(arity(&format!(":{}", name.full()), 2)),
        },
        Value::Symbol(name) => match arguments {
            [map] => Ok(lookup(map, function).unwrap_or_default()),
            [map, default] => Ok(lookup(map, function).unwrap_or_else(|| default.clone())),
            _ => Err(arity(name.full(), 2)),
        },
        Value::Map(_) => match arguments {
            [key] => Ok(lookup(function, key).unwrap_or_default()),
            [key, default] => Ok(lookup(function, key).unwrap_or_else(|| default.clone())),
            _ => Err(arity("a map", 2)),
        },
        Value::Set(_) => match arguments {
            [key] => Ok(lookup(function, key).unwrap_or_default()),
            _ => Err(arity("a set", 1)),
        },
        Value::Vector(items) => match arguments {
            [Value::Integer(index)] => {
                let item = usize::try_from(*index).ok().and_then(|index| items.get(index));
                item.cloned().ok_or_else(|| {
                    let message = format!("index {index} is outside of a vector of {}", items.len());
                    Error::new(ErrorKind::IndexOutOfBounds, message)
                })
            }
            [other] => Err(crate::library::type_error("a vector", "an integer as index", other)),
            _ => Err(arity("a vector", 1)),
        },
        other => Err(not_callable(other)),
    }
}

#[cold]
fn not_callable(value: &Value) -> Error {
    let error = Error::new(ErrorKind::NotCallable, format!("{} is not a function", describe(value)));
    match value {
        Value::Nil => error.hint("the name in call position has the value nil"),
        Value::List(_) | Value::Sequence(_) | Value::Lazy(_) => error.hint("use `(nth sequence index)`"),
        Value::Integer(_) | Value::Float(_) | Value::Ratio(_) | Value::String(_) | Value::Boolean(_) => {
            error.hint("the first item of a list is called; write data as a vector: `[a b]`")
        }
        _ => error,
    }
}

/// Describes a value in a message: small ones as they are, others by their type. A text may be secret, and
/// the message may be shown to a model.
fn describe(value: &Value) -> String {
    match value {
        Value::Nil => "nil".to_owned(),
        Value::Boolean(value) => value.to_string(),
        Value::Integer(value) => value.to_string(),
        Value::Float(value) => format!("{value:?}"),
        other => format!("a {}", other.type_name()),
    }
}

/// Looks up a key as `get` does; `None` for a value that is not a map, set, vector or string.
pub(crate) fn lookup(collection: &Value, key: &Value) -> Option<Value> {
    match collection {
        Value::Map(map) => map.get(key).cloned(),
        Value::Set(set) => set.get(key).cloned(),
        Value::Vector(items) => match key {
            Value::Integer(index) => usize::try_from(*index).ok().and_then(|index| items.get(index)).cloned(),
            _ => None,
        },
        Value::String(text) => match key {
            Value::Integer(index) => {
                let index = usize::try_from(*index).ok()?;
                if text.is_ascii() {
                    return text.as_bytes().get(index).map(|byte| Value::Character(char::from(*byte)));
                }
                // Indices count UTF-16 code units; half of a pair is shown as the character that it belongs
                // to.
                let (byte, _) = text.place_of_unit(index)?;
                text[byte..].chars().next().map(Value::Character)
            }
            _ => None,
        },
        Value::Exception(exception) => match key {
            Value::Keyword(name) => match name.full() {
                "message" => exception.message().map(|text| Value::String(text.clone())),
                "data" => Some(exception.data().clone()),
                "cause" => Some(exception.cause().clone()),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    }
}

/// The error for a call of a function with a number of arguments that it does not take.
#[cold]
pub(super) fn wrong_arity(closure: &Closure, count: usize) -> Error {
    let name = closure.name().unwrap_or("fn");
    let arities: Vec<&str> = closure.parameters().collect();
    let error = Error::new(ErrorKind::Arity, format!("{name}: wrong number of arguments ({count})"));
    if closure.name().is_none() && arities == ["[]"] {
        return error
            .hint("it takes none: `#()` has an argument only if it contains `%`; write `(fn [_] ...)`");
    }
    error.hint(format!("`{name}` takes {}", arities.join(" or ")))
}

/// Returns the first items of a sequence, with `nil` for missing ones, and the rest; or the cell that must be
/// realised first.
pub(super) fn spread(
    value: &Value,
    count: usize,
    rest: bool,
) -> Result<std::result::Result<Vec<Value>, Arc<LazyCell>>> {
    let mut items = Vec::with_capacity(count + 1);
    if let Value::Vector(vector) = value
        && !rest
    {
        items.extend(vector.iter().take(count).cloned());
        items.resize(count, Value::Nil);
        return Ok(Ok(items));
    }
    if matches!(value, Value::Map(_) | Value::Set(_)) && !rest {
        return Err(crate::library::type_error("destructuring", "a sequence", value));
    }
    let Some(mut cursor) = Cursor::new(value) else {
        return Err(crate::library::type_error("destructuring", "a sequence", value));
    };
    while items.len() < count {
        match cursor.next() {
            CursorStep::Item(item) => items.push(item),
            CursorStep::End => items.push(Value::Nil),
            CursorStep::Blocked(cell) => return Ok(Err(cell)),
        }
    }
    if rest {
        // The rest is nil if there are no more items, which requires reading the next cell.
        match cursor.clone().next() {
            CursorStep::Item(_) => items.push(cursor.into_value()),
            CursorStep::End => items.push(Value::Nil),
            CursorStep::Blocked(cell) => return Ok(Err(cell)),
        }
    }
    Ok(Ok(items))
}
