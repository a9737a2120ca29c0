//! Short notation of JSON Schemas, for the signatures of tools.
//!
//! `query:string, limit:int? -> [{id:int, title:string}]`. Models read it; a schema without a short notation
//! is `any`.

use serde_json::{Map, Value as Json};

/// At this depth and below, an object is a `map` and an array a `list`.
const DEPTH: usize = 3;
/// An object with more fields is a `map`.
const FIELDS: usize = 12;
/// An enumeration with more values is shown as its type.
const CHOICES: usize = 8;

/// The names of a tool's parameters, in the order of its schema.
pub(super) fn parameter_names(schema: &Json) -> impl Iterator<Item = &str> {
    properties(schema).into_iter().flat_map(|properties| properties.keys().map(String::as_str))
}

/// The parameters and the result of a tool.
pub(super) fn signature(parameters: &Json, output: Option<&Json>) -> String {
    let fields = properties(parameters).map(|fields| words_of_fields(parameters, fields, parameters, 0));
    let result = output.map_or_else(|| "any".to_owned(), |output| words(output, output, 0));
    match fields.filter(|fields| !fields.is_empty()) {
        Some(fields) => format!("{fields} -> {result}"),
        None => format!("-> {result}"),
    }
}

fn properties(schema: &Json) -> Option<&Map<String, Json>> {
    schema.get("properties")?.as_object()
}

fn words_of_fields(schema: &Json, fields: &Map<String, Json>, root: &Json, depth: usize) -> String {
    let required = |name: &str| {
        let required = schema.get("required").and_then(Json::as_array);
        required.is_some_and(|required| required.iter().any(|field| field == name))
    };
    let field = |(name, field): (&String, &Json)| {
        let optional = if required(name) { "" } else { "?" };
        format!("{name}:{}{optional}", words(field, root, depth + 1))
    };
    fields.iter().map(field).collect::<Vec<_>>().join(", ")
}

fn words(schema: &Json, root: &Json, depth: usize) -> String {
    if let Some(reference) = schema.get("$ref").and_then(Json::as_str) {
        let target = reference.strip_prefix('#').and_then(|pointer| root.pointer(pointer));
        return match target {
            Some(target) if depth <= DEPTH => words(target, root, depth + 1),
            _ => "any".to_owned(),
        };
    }
    if let Some(choices) = schema.get("enum").and_then(Json::as_array)
        && (1..=CHOICES).contains(&choices.len())
    {
        return choices.iter().map(Json::to_string).collect::<Vec<_>>().join("|");
    }
    for key in ["anyOf", "oneOf"] {
        if let Some(choices) = schema.get(key).and_then(Json::as_array)
            && depth <= DEPTH
        {
            return joined(choices.iter().map(|choice| words(choice, root, depth + 1)));
        }
    }
    match schema.get("type") {
        Some(Json::String(name)) => word(name, schema, root, depth),
        Some(Json::Array(names)) => {
            joined(names.iter().filter_map(Json::as_str).map(|name| word(name, schema, root, depth)))
        }
        _ => "any".to_owned(),
    }
}

/// The distinct words, joined, or `any`.
fn joined(all: impl Iterator<Item = String>) -> String {
    let mut distinct: Vec<String> = Vec::new();
    for word in all {
        if !distinct.contains(&word) {
            distinct.push(word);
        }
    }
    if distinct.is_empty() { "any".to_owned() } else { distinct.join("|") }
}

fn word(name: &str, schema: &Json, root: &Json, depth: usize) -> String {
    match name {
        "string" => "string".to_owned(),
        "integer" => "int".to_owned(),
        "number" => "float".to_owned(),
        "boolean" => "bool".to_owned(),
        "null" => "nil".to_owned(),
        "array" => match schema.get("items") {
            Some(items) if depth < DEPTH => format!("[{}]", words(items, root, depth + 1)),
            _ => "list".to_owned(),
        },
        "object" => match properties(schema) {
            Some(fields) if depth < DEPTH && (1..=FIELDS).contains(&fields.len()) => {
                format!("{{{}}}", words_of_fields(schema, fields, root, depth))
            }
            _ => "map".to_owned(),
        },
        _ => "any".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn schemas_in_words() {
        let parameters = json!({
            "type": "object",
            "properties": {
                "query": {"type": "string"},
                "limit": {"type": ["integer", "null"]},
                "kind": {"enum": ["a", "b"]},
                "where": {"$ref": "#/$defs/Place"},
                "loop": {"$ref": "#/properties/loop"},
            },
            "required": ["query", "where"],
            "$defs": {"Place": {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]}},
        });
        let output =
            json!({"type": "array", "items": {"type": "object", "properties": {"id": {"type": "integer"}}}});
        assert_eq!(
            signature(&parameters, Some(&output)),
            "query:string, limit:int|nil?, kind:\"a\"|\"b\"?, where:{x:float}, loop:any? -> [{id:int?}]"
        );
        assert_eq!(signature(&json!({"type": "object"}), None), "-> any");
        assert_eq!(parameter_names(&parameters).count(), 5);
    }
}
