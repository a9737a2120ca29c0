//! Short notation of JSON Schemas, for the signatures of tools.
//!
//! `query:string, limit:int? -> [{id:int, title:string}]`. Models read it; a schema without a short notation
//! is `any`.

use serde_json::{Map, Value as Json};

/// At this depth and below, an object is a `map` and an array a `list`.
const DEPTH: usize = 6;
/// An object with more fields is a `map`.
const FIELDS: usize = 40;
/// An enumeration with more values is shown as its type.
const CHOICES: usize = 8;
/// After this many words, the rest is `any`.
const WORDS: usize = 400;

/// The names of a tool's parameters, in the order of its schema.
pub(super) fn parameter_names(schema: &Json) -> impl Iterator<Item = &str> {
    properties(schema).into_iter().flat_map(|properties| properties.keys().map(String::as_str))
}

/// The parameters and the result of a tool.
pub(super) fn signature(parameters: &Json, output: Option<&Json>) -> String {
    let fields = properties(parameters).map(|fields| Writer::new(parameters).fields(parameters, fields, 0));
    let result = output.map_or_else(|| "any".to_owned(), |output| Writer::new(output).words(output, 0));
    match fields.filter(|fields| !fields.is_empty()) {
        Some(fields) => format!("{fields} -> {result}"),
        None => format!("-> {result}"),
    }
}

fn properties(schema: &Json) -> Option<&Map<String, Json>> {
    schema.get("properties")?.as_object()
}

/// Writes one schema. A reference or a choice is not a level of its own, so the names of fields show whether a
/// type is named or written in its place.
struct Writer<'a> {
    root: &'a Json,
    /// The references around the current place. One that contains itself is `any`.
    open: Vec<&'a str>,
    left: usize,
}

impl<'a> Writer<'a> {
    fn new(root: &'a Json) -> Self {
        Self { root, open: Vec::new(), left: WORDS }
    }

    fn fields(&mut self, schema: &'a Json, fields: &'a Map<String, Json>, depth: usize) -> String {
        let required = schema.get("required").and_then(Json::as_array);
        let is_required =
            |name: &str| required.is_some_and(|required| required.iter().any(|field| field == name));
        let mut words = Vec::with_capacity(fields.len());
        for (name, field) in fields {
            let optional = if is_required(name) { "" } else { "?" };
            words.push(format!("{name}:{}{optional}", self.words(field, depth + 1)));
        }
        words.join(", ")
    }

    fn words(&mut self, schema: &'a Json, depth: usize) -> String {
        self.left = self.left.saturating_sub(1);
        if self.left == 0 {
            return "any".to_owned();
        }
        if let Some(reference) = schema.get("$ref").and_then(Json::as_str) {
            let target = reference.strip_prefix('#').and_then(|pointer| self.root.pointer(pointer));
            return match target {
                Some(target) if !self.open.contains(&reference) => {
                    self.open.push(reference);
                    let words = self.words(target, depth);
                    self.open.pop();
                    words
                }
                _ => "any".to_owned(),
            };
        }
        if let Some(choices) = schema.get("enum").and_then(Json::as_array)
            && (1..=CHOICES).contains(&choices.len())
        {
            return choices.iter().map(Json::to_string).collect::<Vec<_>>().join("|");
        }
        for key in ["anyOf", "oneOf"] {
            if let Some(choices) = schema.get(key).and_then(Json::as_array) {
                return joined(choices.iter().map(|choice| self.words(choice, depth)));
            }
        }
        match schema.get("type") {
            Some(Json::String(name)) => self.word(name, schema, depth),
            Some(Json::Array(names)) => {
                joined(names.iter().filter_map(Json::as_str).map(|name| self.word(name, schema, depth)))
            }
            _ => "any".to_owned(),
        }
    }

    fn word(&mut self, name: &str, schema: &'a Json, depth: usize) -> String {
        match name {
            "string" => "string".to_owned(),
            "integer" => "int".to_owned(),
            "number" => "float".to_owned(),
            "boolean" => "bool".to_owned(),
            "null" => "nil".to_owned(),
            "array" => match schema.get("items") {
                Some(items) if depth < DEPTH => format!("[{}]", self.words(items, depth + 1)),
                _ => "list".to_owned(),
            },
            "object" => match properties(schema) {
                Some(fields) if depth < DEPTH && (1..=FIELDS).contains(&fields.len()) => {
                    format!("{{{}}}", self.fields(schema, fields, depth))
                }
                _ => "map".to_owned(),
            },
            _ => "any".to_owned(),
        }
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

    #[test]
    fn fields_of_named_types_are_shown_and_endless_ones_end() {
        let output = json!({
            "type": "object",
            "properties": {
                "matches": {"type": "array", "items": {"$ref": "#/$defs/Match"}},
                "more": {"anyOf": [{"$ref": "#/$defs/Match"}, {"type": "null"}]},
            },
            "required": ["matches"],
            "$defs": {"Match": {"type": "object", "properties": {
                "line": {"type": "integer"}, "inner": {"$ref": "#/$defs/Match"},
            }, "required": ["line"]}},
        });
        assert_eq!(
            signature(&json!({}), Some(&output)),
            "-> {matches:[{line:int, inner:any?}], more:{line:int, inner:any?}|nil?}"
        );
        // Every type names all others: the number of words is bounded all the same.
        let names: Vec<String> = (0..30).map(|number| format!("#/$defs/t{number}")).collect();
        let fields: Map<String, Json> =
            names.iter().enumerate().map(|(at, name)| (format!("f{at}"), json!({"$ref": name}))).collect();
        let types: Map<String, Json> = (0..30)
            .map(|number| (format!("t{number}"), json!({"type": "object", "properties": fields})))
            .collect();
        let output = json!({"$ref": "#/$defs/t0", "$defs": types});
        assert!(signature(&json!({}), Some(&output)).len() < 20_000);
    }
}
