//! Checks for JSON values that survive storage unchanged.
//!
//! A value from a model or a tool is written into a record and the record into a batch, and all of it is
//! parsed when the session is opened again. A value that can be written but not read would make a session
//! unreadable, so it is refused (or kept as text) before it is written. There are two such cases:
//!
//! - nesting: the parser fails at 128 levels, of which a value may use [`MAX_DEPTH`]; the rest is for
//!   enclosing structures;
//! - keys that start with `$serde_json::private::`, which the parser treats as instructions.
//!
//! The check recurses no deeper than [`MAX_DEPTH`] for any value.

use serde_json::{Map, Value};

/// Largest depth of arrays and objects in a stored value.
pub const MAX_DEPTH: usize = 64;

/// Largest depth of arrays and objects in a slice item. An item may hold stored values, as a message holds a
/// result, so it may be deeper. A snapshot with the item still stays within the default limits.
pub const MAX_ITEM_DEPTH: usize = MAX_DEPTH + 16;

pub(crate) const PRIVATE_KEYS: &str = "$serde_json::private::";

/// The value could be written, but not read again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotStorable {
    /// Arrays and objects nest too deeply.
    #[error("the value nests deeper than {limit} levels; flatten it, or store it as text")]
    TooDeep {
        /// Largest depth allowed.
        limit: usize,
    },
    /// A key is reserved by the JSON parser.
    #[error("the value has a key that starts with `$serde_json::private::`; rename it, or store it as text")]
    PrivateKey,
}

/// Refuses a value that would not survive storage unchanged.
pub fn check(value: &Value) -> Result<(), NotStorable> {
    check_within(value, MAX_DEPTH)
}

/// Refuses a slice item that would not survive storage unchanged.
pub fn check_item(item: &Value) -> Result<(), NotStorable> {
    check_within(item, MAX_ITEM_DEPTH).map_err(|problem| match problem {
        NotStorable::TooDeep { .. } => NotStorable::TooDeep { limit: MAX_ITEM_DEPTH },
        other => other,
    })
}

/// Refuses an object that would not survive storage unchanged.
pub fn check_object(object: &Map<String, Value>) -> Result<(), NotStorable> {
    check_fields(object, MAX_DEPTH)
}

fn check_within(value: &Value, levels: usize) -> Result<(), NotStorable> {
    match value {
        Value::Array(items) => {
            let levels = one_less(levels)?;
            items.iter().try_for_each(|item| check_within(item, levels))
        }
        Value::Object(fields) => check_fields(fields, levels),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
    }
}

fn check_fields(fields: &Map<String, Value>, levels: usize) -> Result<(), NotStorable> {
    let levels = one_less(levels)?;
    fields.iter().try_for_each(|(name, value)| {
        if name.starts_with(PRIVATE_KEYS) {
            Err(NotStorable::PrivateKey)
        } else {
            check_within(value, levels)
        }
    })
}

fn one_less(levels: usize) -> Result<usize, NotStorable> {
    levels.checked_sub(1).ok_or(NotStorable::TooDeep { limit: MAX_DEPTH })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn nested(levels: usize) -> Value {
        (0..levels).fold(
            Value::Null,
            |inner, level| if level % 2 == 0 { json!([inner]) } else { json!({"a": inner}) },
        )
    }

    #[test]
    fn nesting_is_allowed_up_to_the_limit() {
        assert_eq!(check(&nested(0)), Ok(()));
        assert_eq!(check(&nested(MAX_DEPTH)), Ok(()));
        assert_eq!(check(&nested(MAX_DEPTH + 1)), Err(NotStorable::TooDeep { limit: MAX_DEPTH }));
        assert_eq!(check(&nested(1_000)), Err(NotStorable::TooDeep { limit: MAX_DEPTH }));
        assert_eq!(check_object(nested(MAX_DEPTH).as_object().unwrap()), Ok(()));
    }

    #[test]
    fn private_keys_of_the_parser_are_refused_because_they_do_not_come_back() {
        let value = json!({"a": [{"$serde_json::private::RawValue": "[1]"}]});
        assert_eq!(check(&value), Err(NotStorable::PrivateKey));
        // The reason for the rule. If this assertion ever fails, the rule can be removed.
        let again: Value = serde_json::from_str(&value.to_string()).unwrap();
        assert_ne!(again, value);
    }
}
