//! The type labels that a model sees beside its data and definitions.
//!
//! `list[3]`, `map[2]`, `set[0]`, `string`, `integer`, `float`, `boolean`, `keyword`, `nil`, `#fn[...]`, and
//! `ratio`, `char`, `symbol`, `regex`, `date` and so on for types that the original vocabulary lacks. A
//! vector and a list are both a `list`. A sequence whose end has not been reached is `seq` and is never
//! counted.

use crate::value::{Cursor, CursorStep, Value};

/// Returns the type label of a value.
pub fn type_label(value: &Value) -> String {
    match value {
        Value::Vector(items) => format!("list[{}]", items.len()),
        Value::Map(map) => format!("map[{}]", map.len()),
        Value::Set(set) => format!("set[{}]", set.len()),
        Value::List(_) | Value::Sequence(_) | Value::Lazy(_) => match realised_length(value) {
            Some(length) => format!("list[{length}]"),
            None => "seq".to_owned(),
        },
        Value::Closure(_) | Value::Native(_) | Value::Tool(_) => "#fn[...]".to_owned(),
        other => other.type_name().to_owned(),
    }
}

/// Returns the length of a sequence if all of its cells are realised.
fn realised_length(value: &Value) -> Option<usize> {
    let mut cursor = Cursor::new(value)?;
    if let Some(length) = cursor.left() {
        return Some(length);
    }
    if let Cursor::Range(_, _, u64::MAX) = cursor {
        return None;
    }
    let mut length = 0;
    loop {
        match cursor.next() {
            CursorStep::Item(_) => length += 1,
            CursorStep::End => return Some(length),
            CursorStep::Blocked(_) => return None,
        }
        // A chain may end in an infinite range.
        if let Cursor::Range(_, _, u64::MAX) = cursor {
            return None;
        }
    }
}
