//! The schema of a structured answer, in the dialect that a provider enforces.
//!
//! Each provider supports a part of JSON Schema. Unsupported constraints are moved into the description,
//! where the model reads them; objects are closed where the provider requires it. Every value that fits an
//! adapted schema fits the original, apart from the constraints that were only described; answers are checked
//! against the original in any case. A schema that cannot be expressed in a dialect is not sent.

use serde_json::{Map, Value, json};

/// A schema as it is sent.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct OutputSchema {
    pub(crate) schema: Value,
    /// Whether the provider enforces every constraint of it.
    pub(crate) strict: bool,
}

/// The part of JSON Schema that a provider supports. Objects of an adapted schema are closed.
pub(crate) struct SchemaDialect {
    /// Unsupported constraints that are moved into the description.
    pub(crate) described: &'static [&'static str],
    /// The largest supported value of `minItems`.
    pub(crate) min_items: u64,
    /// Whether all properties of an object must be required.
    pub(crate) complete: bool,
}

/// Annotations that do not constrain an answer. They are dropped.
const ANNOTATIONS: &[&str] =
    &["$schema", "$id", "$comment", "default", "examples", "deprecated", "readOnly", "writeOnly"];

/// Conditions between parts of a value, which no provider supports.
const CONDITIONS: &[&str] = &[
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

/// The supported formats of strings.
const FORMATS: &[&str] =
    &["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"];

impl OutputSchema {
    /// The unchanged schema, which is not enforced strictly.
    pub(crate) fn plain(schema: &Value) -> Self {
        Self { schema: without_dialect(schema), strict: false }
    }
}

/// The schema without the name of its dialect.
fn without_dialect(schema: &Value) -> Value {
    let mut schema = schema.clone();
    if let Some(fields) = schema.as_object_mut() {
        fields.shift_remove("$schema");
    }
    schema
}

impl SchemaDialect {
    /// The schema in this dialect; `None` when it cannot be expressed.
    pub(crate) fn adapt(&self, schema: &Value) -> Option<Value> {
        let mut fields = schema.as_object()?.clone();
        if fields.is_empty() || CONDITIONS.iter().any(|name| fields.contains_key(*name)) {
            return None;
        }
        for name in ANNOTATIONS {
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
        if is_object(&fields) {
            self.close(&mut fields)?;
        }
        Some(fields.into())
    }

    /// Moves unsupported constraints into the description.
    fn describe(&self, fields: &mut Map<String, Value>) {
        let mut limits = Vec::new();
        for name in self.described {
            if let Some(value) = fields.shift_remove(*name) {
                limits.push(format!("{name}: {value}"));
            }
        }
        if let Some(least) = fields.get("minItems").and_then(Value::as_u64)
            && least > self.min_items
        {
            limits.push(format!("minItems: {least}"));
            fields.insert("minItems".to_owned(), self.min_items.into());
        }
        if let Some(format) = fields.get("format").and_then(Value::as_str)
            && !FORMATS.contains(&format)
        {
            // Formats of numbers only concern the program that reads them.
            if fields.get("type").is_some_and(|kind| kind == "string") {
                limits.push(format!("format: {format}"));
            }
            fields.shift_remove("format");
        }
        if limits.is_empty() {
            return;
        }
        let limits = format!("({})", limits.join(", "));
        let described = match fields.get("description").and_then(Value::as_str) {
            Some(text) => format!("{text} {limits}"),
            None => limits,
        };
        fields.insert("description".to_owned(), described.into());
    }

    /// Forbids additional properties. An object with arbitrary properties cannot be closed.
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
                    // An optional property becomes required, so it must allow null instead.
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

/// The instruction for a model whose provider does not enforce the schema.
pub(crate) fn in_words(schema: &Value) -> String {
    let schema = without_dialect(schema);
    format!(
        "Once you call nothing more, answer with JSON that fits this JSON Schema, and with nothing else: {schema}"
    )
}
