//! The schema of a structured answer, in the dialect that a provider holds a model to.
//!
//! Providers take a part of JSON Schema each. What one does not take is written into the description, where the model reads it;
//! objects are closed where that is asked for. Whatever fits an adapted schema fits the original, except for what was only described,
//! and answers are checked against the original in any case. A schema that cannot be said in a dialect at all is not sent.

use serde_json::{Map, Value, json};

/// How a provider is asked for a structured answer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct OutputSchema {
    pub(crate) schema: Value,
    /// Whether the model is held to every word of it.
    pub(crate) strict: bool,
}

/// What a provider takes of JSON Schema.
pub(crate) struct SchemaDialect {
    /// Constraints that it does not know; they are described.
    pub(crate) described: &'static [&'static str],
    /// What it does not know and nobody misses.
    pub(crate) dropped: &'static [&'static str],
    /// What it does not know and cannot be left out.
    pub(crate) refused: &'static [&'static str],
    /// The formats of texts that it knows.
    pub(crate) formats: &'static [&'static str],
    /// The largest number of items that it can ask for at least.
    pub(crate) min_items: u64,
    /// Whether an object has to name all that it may have.
    pub(crate) closed: bool,
    /// Whether an object has to have all that it names.
    pub(crate) complete: bool,
}

/// Annotations that no answer depends on.
pub(crate) const ANNOTATIONS: &[&str] =
    &["$schema", "$id", "$comment", "default", "examples", "deprecated", "readOnly", "writeOnly"];

/// Conditions between parts of a value.
pub(crate) const CONDITIONS: &[&str] = &[
    "not",
    "if",
    "then",
    "else",
    "patternProperties",
    "propertyNames",
    "dependentRequired",
    "dependentSchemas",
    "unevaluatedProperties",
    "unevaluatedItems",
    "contains",
    "prefixItems",
];

/// Common formats of texts.
pub(crate) const FORMATS: &[&str] =
    &["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"];

impl OutputSchema {
    /// The schema as it is, which the model is asked to follow.
    pub(crate) fn plain(schema: &Value) -> Self {
        Self { schema: without(schema, &["$schema"]), strict: false }
    }
}

fn without(schema: &Value, names: &[&str]) -> Value {
    let mut schema = schema.clone();
    if let Some(fields) = schema.as_object_mut() {
        for name in names {
            fields.shift_remove(*name);
        }
    }
    schema
}

impl SchemaDialect {
    /// A schema in this dialect; none when it cannot be said.
    pub(crate) fn adapt(&self, schema: &Value) -> Option<Value> {
        let mut fields = schema.as_object()?.clone();
        if fields.is_empty() || self.refused.iter().any(|name| fields.contains_key(*name)) {
            return None;
        }
        for name in self.dropped {
            fields.shift_remove(*name);
        }
        self.describe(&mut fields);
        if let Some(choices) = fields.shift_remove("oneOf") {
            fields.insert("anyOf".to_owned(), choices);
        }
        for name in ["anyOf", "allOf"] {
            if let Some(Value::Array(choices)) = fields.get_mut(name) {
                *choices = choices.iter().map(|choice| self.adapt(choice)).collect::<Option<_>>()?;
            }
        }
        for name in ["properties", "$defs", "definitions"] {
            if let Some(Value::Object(named)) = fields.get_mut(name) {
                for schema in named.values_mut() {
                    *schema = self.adapt(schema)?;
                }
            }
        }
        if let Some(items) = fields.get_mut("items") {
            *items = self.adapt(items)?;
        }
        if is_object(&fields) && self.closed {
            self.close(&mut fields)?;
        }
        Some(fields.into())
    }

    /// Moves constraints that the provider does not know into the description.
    fn describe(&self, fields: &mut Map<String, Value>) {
        let mut said = Vec::new();
        for name in self.described {
            if let Some(value) = fields.shift_remove(*name) {
                said.push(format!("{name}: {value}"));
            }
        }
        if let Some(least) = fields.get("minItems").and_then(Value::as_u64)
            && least > self.min_items
        {
            said.push(format!("minItems: {least}"));
            fields.insert("minItems".to_owned(), self.min_items.into());
        }
        if let Some(format) = fields.get("format").and_then(Value::as_str)
            && !self.formats.contains(&format)
        {
            // Formats of numbers are a matter of the program that reads them.
            if fields.get("type").is_some_and(|kind| kind == "string") {
                said.push(format!("format: {format}"));
            }
            fields.shift_remove("format");
        }
        if said.is_empty() {
            return;
        }
        let said = format!("({})", said.join(", "));
        let described = match fields.get("description").and_then(Value::as_str) {
            Some(text) => format!("{text} {said}"),
            None => said,
        };
        fields.insert("description".to_owned(), described.into());
    }

    /// Makes an object have nothing that it does not name. One that may have anything cannot be closed.
    fn close(&self, fields: &mut Map<String, Value>) -> Option<()> {
        let properties = fields.get("properties").and_then(Value::as_object);
        match (fields.get("additionalProperties"), properties) {
            (Some(Value::Bool(false)), _) | (None | Some(Value::Bool(true)), Some(_)) => {}
            _ => return None,
        }
        if self.complete {
            let mut required = fields.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
            for (name, schema) in properties.into_iter().flatten() {
                if !required.iter().any(|known| known == name) {
                    // Whoever may leave it out may say that it is nothing instead, if that is allowed.
                    may_be_null(schema).then_some(())?;
                    required.push(name.as_str().into());
                }
            }
            fields.insert("required".to_owned(), required.into());
            fields.entry("properties").or_insert_with(|| json!({}));
        }
        fields.insert("additionalProperties".to_owned(), false.into());
        Some(())
    }
}

fn is_object(fields: &Map<String, Value>) -> bool {
    let is_object = |kind: &Value| kind == "object";
    fields.contains_key("properties")
        || fields.get("type").is_some_and(|kind| {
            is_object(kind) || kind.as_array().is_some_and(|kinds| kinds.iter().any(is_object))
        })
}

fn may_be_null(schema: &Value) -> bool {
    let kind = &schema["type"];
    let listed = kind.as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind == "null"));
    let chosen = schema["anyOf"].as_array().is_some_and(|choices| choices.iter().any(may_be_null));
    kind == "null" || listed || chosen
}

/// What a model is told that is not held to a schema.
pub(crate) fn in_words(schema: &Value) -> String {
    let schema = serde_json::to_string(&without(schema, &["$schema"])).unwrap_or_default();
    format!(
        "Once you call nothing more, answer with JSON that fits this JSON Schema, and with nothing else: {schema}"
    )
}
