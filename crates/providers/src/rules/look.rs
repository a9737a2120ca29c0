//! Access to JSON, and the conditions that several tables have, for the tables of rules.

use serde_json::Value;

/// A field of an object. The objects of requests are small, and the rules look at each of them many times: to compare the names
/// takes a fraction of the time of hashing one.
pub(crate) fn field<'a>(value: &'a Value, name: &str) -> Option<&'a Value> {
    value.as_object()?.iter().find_map(|(field, value)| (field == name).then_some(value))
}

/// The items of a list field; empty when it is missing or not a list.
pub(crate) fn items<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    field(value, name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The value of a text field; empty when it is missing or not a text.
pub(crate) fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    field(value, name).and_then(Value::as_str).unwrap_or_default()
}

/// Whether a field is a text that is not empty.
pub(crate) fn has_text(value: &Value, name: &str) -> bool {
    !text(value, name).is_empty()
}

/// Fails with a place unless a condition holds.
pub(crate) fn ensure(holds: bool, place: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(place()) }
}

/// Fails with the place of the first item of a list for which a condition does not hold. The place names the
/// list, as in `messages[]`, and may continue with a field.
pub(crate) fn each(value: &Value, place: &str, holds: impl Fn(&Value) -> bool) -> Result<(), String> {
    let (list, field) = place.split_once("[]").unwrap_or((place, ""));
    let wrong = items(value, list).iter().position(|item| !holds(item));
    wrong.map_or(Ok(()), |index| Err(format!("{list}[{index}]{field}")))
}

/// Does the same for the items of lists in the items of a list, as in `messages[].content[]`. The condition
/// gets the outer item too.
pub(crate) fn each_in(
    value: &Value,
    place: &str,
    holds: impl Fn(&Value, &Value) -> bool,
) -> Result<(), String> {
    let (outer, inner) = place.split_once("[].").unwrap_or((place, ""));
    for (index, item) in items(value, outer).iter().enumerate() {
        each(item, inner, |one| holds(item, one)).map_err(|place| format!("{outer}[{index}].{place}"))?;
    }
    Ok(())
}

/// Requires the name of a model.
pub(crate) fn check_model(request: &Value) -> Result<(), String> {
    ensure(has_text(request, "model"), || "model".into())
}

/// Requires that each name is a plain one of at most 64 characters.
pub(crate) fn check_names<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<(), String> {
    let odd = names.into_iter().find(|name| !is_plain_name(name, 64));
    odd.map_or(Ok(()), |name| Err(format!("{name:?}")))
}

/// Requires that no name occurs twice.
pub(crate) fn check_unique<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<(), String> {
    let mut seen = std::collections::BTreeSet::new();
    let twice = names.into_iter().find(|name| !seen.insert(*name));
    twice.map_or(Ok(()), |name| Err(format!("{name:?} occurs twice")))
}

/// Whether a name has 1 to `longest` characters, all of them ASCII letters, digits, `_` or `-`.
pub(crate) fn is_plain_name(name: &str, longest: usize) -> bool {
    (1..=longest).contains(&name.len())
        && name.chars().all(|character| matches!(character, 'a'..='z' | 'A'..='Z' | '0'..='9' | '_' | '-'))
}

/// Whether a value is the text of a JSON object.
pub(crate) fn is_object_text(value: &Value) -> bool {
    let text = value.as_str().unwrap_or_default();
    serde_json::from_str::<Value>(text).is_ok_and(|parsed| parsed.is_object())
}

/// Whether a schema is not strict, or every object of it is closed.
pub(crate) fn is_closed_if_strict(strict: &Value, schema: &Value) -> bool {
    *strict != true || is_closed_everywhere(schema)
}

fn is_closed_everywhere(schema: &Value) -> bool {
    match schema {
        Value::Array(list) => list.iter().all(is_closed_everywhere),
        Value::Object(fields) => {
            let properties = fields.get("properties").and_then(Value::as_object);
            let describes_object = schema["type"] == "object" || fields.contains_key("properties");
            let is_required = |name: &String| items(schema, "required").iter().any(|entry| entry == name);
            let mut names = properties.into_iter().flat_map(|all| all.keys());
            let closed = schema["additionalProperties"] == false && names.all(is_required);
            (!describes_object || closed) && fields.values().all(is_closed_everywhere)
        }
        _ => true,
    }
}

/// Whether a URL can be loaded by a provider, or contains the bytes.
pub(crate) fn is_web_or_data(url: &str) -> bool {
    url.starts_with("https://") || url.starts_with("http://") || url.starts_with("data:")
}
