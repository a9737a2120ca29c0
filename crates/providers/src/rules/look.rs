//! Access to JSON, for the tables of rules.

use serde_json::Value;

/// The items of a list field; empty when it is missing or not a list.
pub(crate) fn items<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The value of a text field; empty when it is missing or not a text.
pub(crate) fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// Fails with a place unless a condition holds.
pub(crate) fn ensure(holds: bool, place: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(place()) }
}

/// Whether a name has 1 to `longest` characters, all of them ASCII letters, digits, `_` or `-`.
pub(crate) fn is_plain_name(name: &str, longest: usize) -> bool {
    (1..=longest).contains(&name.len())
        && name.chars().all(|character| matches!(character, 'a'..='z' | 'A'..='Z' | '0'..='9' | '_' | '-'))
}

/// Whether a value is the text of a JSON object.
pub(crate) fn is_object_text(value: Option<&Value>) -> bool {
    let text = value.and_then(Value::as_str).unwrap_or_default();
    serde_json::from_str::<Value>(text).is_ok_and(|parsed| parsed.is_object())
}

/// The first name that occurs twice in a list.
pub(crate) fn repeated<'a>(names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let mut seen = std::collections::BTreeSet::new();
    names.into_iter().find(|name| !seen.insert(*name))
}

/// Whether every object of a strict schema is closed.
pub(crate) fn is_closed_everywhere(schema: &Value) -> bool {
    match schema {
        Value::Array(list) => list.iter().all(is_closed_everywhere),
        Value::Object(fields) => {
            let describes_object = schema["type"] == "object" || fields.contains_key("properties");
            let names: Vec<&String> = fields
                .get("properties")
                .and_then(Value::as_object)
                .into_iter()
                .flat_map(|all| all.keys())
                .collect();
            let is_required =
                |name: &&String| items(schema, "required").iter().any(|entry| entry == name.as_str());
            let closed = schema["additionalProperties"] == false && names.iter().all(is_required);
            (!describes_object || closed) && fields.values().all(is_closed_everywhere)
        }
        _ => true,
    }
}

/// Whether a URL can be loaded by a provider, or contains the bytes.
pub(crate) fn is_web_or_data(url: &str) -> bool {
    url.starts_with("https://") || url.starts_with("http://") || url.starts_with("data:")
}
