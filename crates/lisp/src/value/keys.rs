//! The other spelling of a key: maps made of JSON answer to the keyword and to the string.

use super::Value;

/// The string for a keyword and the keyword for a string; nothing for other keys.
pub(super) fn other_spelling(key: &Value) -> Option<Value> {
    match key {
        Value::Keyword(name) => Some(Value::string(name.full())),
        Value::String(text) => Some(Value::keyword(text.as_str())),
        _ => None,
    }
}
