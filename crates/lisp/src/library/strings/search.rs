//! Searching for one text in another.

use super::indices::{byte_of, index, unit_of};
use super::{any_text, piece, string};
use crate::error::Result;
use crate::library::{Arity, CallContext, Native, Realise};
use crate::value::{Text, Value};

pub(crate) const NATIVES: &[Native] = &[
    Native::binary("clojure.string/includes?", |c, a| test(c, a, |s, p| s.contains(p))),
    Native::binary("clojure.string/starts-with?", |c, a| test(c, a, |s, p| s.starts_with(p))),
    Native::binary("clojure.string/ends-with?", |c, a| test(c, a, |s, p| s.ends_with(p))),
    Native::leaf("clojure.string/index-of", Arity::between(2, 3), &[Realise::Deep], |c, a| {
        let text = any_value(c, &a[0])?;
        let found = first_index(c, &text, a)?;
        Ok(if found < 0 { Value::Nil } else { Value::Integer(found) })
    }),
    Native::leaf("clojure.string/last-index-of", Arity::between(2, 3), &[Realise::Deep], |c, a| {
        let text = any_value(c, &a[0])?;
        let found = last_index(c, &text, a)?;
        Ok(if found < 0 { Value::Nil } else { Value::Integer(found) })
    }),
];

fn test(context: &mut CallContext<'_>, arguments: &[Value], holds: fn(&str, &str) -> bool) -> Result<Value> {
    let text = any_text(context, &arguments[0])?;
    let wanted = string(context.shown(), &arguments[1])?;
    context.work(text.len() / 64)?;
    Ok(Value::Boolean(holds(&text, wanted)))
}

/// Converts any value but `nil` to a text to search.
fn any_value(context: &CallContext<'_>, value: &Value) -> Result<Text> {
    match value {
        Value::String(text) => Ok(text.clone()),
        other => Ok(Text::new(any_text(context, other)?)),
    }
}

fn clamp(function: &str, text: &Text, start: i64) -> Result<usize> {
    let length = i64::try_from(text.units()).unwrap_or(i64::MAX);
    byte_of(function, text, start.clamp(0, length))
}

/// Returns the index of the first occurrence at or after an optional index, or -1.
pub(super) fn first_index(context: &mut CallContext<'_>, text: &Text, arguments: &[Value]) -> Result<i64> {
    let function = context.shown();
    let wanted = piece(function, &arguments[1])?;
    context.work(text.len() / 64)?;
    let from = match arguments.get(2) {
        Some(start) => clamp(function, text, index(function, start)?)?,
        None => 0,
    };
    Ok(text[from..].find(&*wanted).map_or(-1, |at| unit_of(text, from + at)))
}

/// Returns the index of the last occurrence that begins at or before an optional index, or -1.
pub(super) fn last_index(context: &mut CallContext<'_>, text: &Text, arguments: &[Value]) -> Result<i64> {
    let function = context.shown();
    let wanted = piece(function, &arguments[1])?;
    context.work(text.len() / 64)?;
    let end = match arguments.get(2) {
        Some(start) => {
            let start = index(function, start)?;
            if start < 0 {
                return Ok(-1);
            }
            let begin = clamp(function, text, start)?;
            text.floor_char_boundary((begin + wanted.len()).min(text.len()))
        }
        None => text.len(),
    };
    Ok(text[..end].rfind(&*wanted).map_or(-1, |at| unit_of(text, at)))
}
