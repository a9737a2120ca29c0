//! Fields of JSON that comes from outside. Each may be missing or of another type.

use serde_json::Value;

/// The most bytes of an id.
const LONGEST_ID: usize = 400;

/// Returns a field that is a text.
pub(crate) fn text<'a>(value: &'a Value, name: &str) -> Option<&'a str> {
    value.get(name)?.as_str()
}

/// Returns a field that is an id: a text that is neither empty nor long.
pub(crate) fn id<'a>(value: &'a Value, name: &str) -> Option<&'a str> {
    text(value, name).filter(|id| !id.is_empty() && id.len() <= LONGEST_ID)
}

/// Whether a field is `true`.
pub(crate) fn is_set(value: &Value, name: &str) -> bool {
    value.get(name).and_then(Value::as_bool).unwrap_or(false)
}
