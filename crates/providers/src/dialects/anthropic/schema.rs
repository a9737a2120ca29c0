//! The part of JSON Schema that Messages enforces.

use serde_json::Value;

use crate::provider::ModelTarget;
use crate::request::{OutputSchema, SchemaDialect};

const SCHEMA: SchemaDialect = SchemaDialect {
    described: &[
        "minLength",
        "maxLength",
        "pattern",
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
        "maxItems",
        "uniqueItems",
        "minProperties",
        "maxProperties",
    ],
    min_items: 1,
    complete: false,
};

/// A strict schema; `None` when the schema cannot be expressed as one.
pub(super) fn output_schema(schema: &Value, _: &ModelTarget, _: bool) -> Option<OutputSchema> {
    if is_recursive(schema) {
        return None;
    }
    SCHEMA.adapt(schema).map(|schema| OutputSchema { schema, strict: true })
}

/// Whether a schema refers to itself, which Anthropic does not support.
fn is_recursive(schema: &Value) -> bool {
    let names = ["$defs", "definitions"].into_iter().filter_map(|name| schema[name].as_object()).flatten();
    let mut names = names.map(|(name, _)| name.as_str());
    references(schema).contains(&"#") || names.any(|name| reaches(schema, name, name, &mut Vec::new()))
}

/// Whether one definition refers to another, directly or through others.
fn reaches<'a>(schema: &'a Value, from: &str, to: &str, seen: &mut Vec<&'a str>) -> bool {
    let definition = ["$defs", "definitions"].into_iter().find_map(|name| schema[name].get(from));
    let references = definition.map(references).unwrap_or_default().into_iter();
    references.filter_map(|reference| reference.rsplit('/').next()).any(|name| {
        if name != to && seen.contains(&name) {
            return false;
        }
        seen.push(name);
        name == to || reaches(schema, name, to, seen)
    })
}

/// The references in a schema.
fn references(schema: &Value) -> Vec<&str> {
    match schema {
        Value::Object(fields) => {
            let mut found: Vec<&str> = fields.get("$ref").and_then(Value::as_str).into_iter().collect();
            found.extend(fields.values().flat_map(references));
            found
        }
        Value::Array(items) => items.iter().flat_map(references).collect(),
        _ => Vec::new(),
    }
}
