//! Which JSON values can be stored: those that come back as they were.
//!
//! A value that arrives from a model or a tool is written into a record, the record into a batch, and all of it is parsed
//! again when the session is opened. A value that can be written but not read would make a session unreadable, so it is
//! refused (or kept as text) before it is written. Two things do that:
//!
//! - nesting: the parser gives up at 128 levels, of which a value may use [`MAX_DEPTH`]; the rest is for what encloses it;
//! - keys that start with `$serde_json::private::`, which the parser takes for an instruction to itself.
//!
//! The check recurses no deeper than [`MAX_DEPTH`], whatever it is given.

use serde_json::{Map, Value};

/// How many arrays and objects a stored value may nest.
pub const MAX_DEPTH: usize = 64;

/// How many arrays and objects a slice item may nest. An item may hold stored values, as a message holds a result, so it has
/// room for what encloses them; a snapshot around it still stays below what is read by default.
pub const MAX_ITEM_DEPTH: usize = MAX_DEPTH + 16;

pub(crate) const PRIVATE_KEYS: &str = "$serde_json::private::";

/// The value could be written, but not be read again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotStorable {
    /// Arrays and objects nest too deeply.
    #[error("the value nests deeper than {limit} levels; flatten it, or store it as text")]
    TooDeep {
        /// How deep it may nest.
        limit: usize,
    },
    /// A key is one that the JSON parser keeps for itself.
    #[error("the value has a key that starts with `$serde_json::private::`; rename it, or store it as text")]
    PrivateKey,
}

/// Refuses a value that would not come back as it is.
pub fn check(value: &Value) -> Result<(), NotStorable> {
    check_within(value, MAX_DEPTH)
}

/// Refuses a slice item that would not come back as it is.
pub fn check_item(item: &Value) -> Result<(), NotStorable> {
    check_within(item, MAX_ITEM_DEPTH).map_err(|problem| match problem {
        NotStorable::TooDeep { .. } => NotStorable::TooDeep { limit: MAX_ITEM_DEPTH },
        other => other,
    })
}

/// Refuses an object that would not come back as it is.
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
        // The reason for the rule. Should this ever hold no more, the rule can go.
        let again: Value = serde_json::from_str(&value.to_string()).unwrap();
        assert_ne!(again, value);
    }
}
