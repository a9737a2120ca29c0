//! The words for types that a model is shown beside its data and definitions.
//!
//! `list[3]`, `map[2]`, `set[0]`, `string`, `integer`, `float`, `boolean`, `keyword`, `nil`, `#fn[...]`, and for what the
//! original vocabulary lacks: `ratio`, `char`, `symbol`, `regex`, `date`, and so on, each its own name. A vector and a
//! list are both a `list`. A sequence whose end has not been reached is `seq` and is never counted.

use crate::value::{Cursor, CursorStep, Value};

/// The type of a value in the vocabulary above.
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

/// The length of a sequence all of whose cells are realised.
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
        // A chain may end in a range that never does.
        if let Cursor::Range(_, _, u64::MAX) = cursor {
            return None;
        }
    }
}
