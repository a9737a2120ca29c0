//! Conversion between signatures and JSON Schemas.

use serde_json::{Map, Value as Json, json};

use super::{Field, Signature, Type};

/// The maximum depth of a schema that is read.
const DEEPEST: usize = 32;

impl Signature {
    /// Reads the JSON Schema of an answer. The schema itself is kept if the types say less.
    pub fn from_schema(schema: &Json) -> Self {
        let output = Type::from_schema(schema);
        let is_exact = output.to_schema() == *schema;
        Self { parameters: Vec::new(), output, schema: (!is_exact).then(|| schema.clone()) }
    }

    /// The JSON Schema of the answer.
    pub fn to_schema(&self) -> Json {
        self.schema.clone().unwrap_or_else(|| self.output.to_schema())
    }
}

impl Type {
    /// The type as a JSON Schema.
    pub fn to_schema(&self) -> Json {
        match self {
            Self::String | Self::Keyword => json!({"type": "string"}),
            Self::Int => json!({"type": "integer"}),
            Self::Float => json!({"type": "number"}),
            Self::Bool => json!({"type": "boolean"}),
            Self::Map => json!({"type": "object"}),
            Self::Any => json!({}),
            Self::List(items) => json!({"type": "array", "items": items.to_schema()}),
            Self::Object(fields) => object_schema(fields),
            Self::Optional(inner) => {
                let mut schema = inner.to_schema();
                if let Some(word) = schema.get_mut("type")
                    && word.is_string()
                {
                    *word = json!([word, "null"]);
                }
                schema
            }
        }
    }

    /// Reads a JSON Schema, as far as a type can express it. Everything else is [`Type::Any`].
    pub fn from_schema(schema: &Json) -> Self {
        read(schema, schema, 0)
    }
}

fn object_schema(fields: &[Field]) -> Json {
    let properties: Map<String, Json> =
        fields.iter().map(|field| (field.name.clone(), field.holds.to_schema())).collect();
    let required: Vec<&str> =
        fields.iter().filter(|field| !field.holds.is_optional()).map(|field| field.name.as_str()).collect();
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}

fn read(schema: &Json, root: &Json, depth: usize) -> Type {
    if depth > DEEPEST {
        return Type::Any;
    }
    let Some(object) = schema.as_object() else { return Type::Any };
    if let Some(reference) = object.get("$ref").and_then(Json::as_str) {
        let there = reference.strip_prefix('#').and_then(|pointer| root.pointer(pointer));
        return there.map_or(Type::Any, |there| read(there, root, depth + 1));
    }
    for word in ["anyOf", "oneOf"] {
        if let Some(choices) = object.get(word).and_then(Json::as_array) {
            return choice(choices, root, depth);
        }
    }
    match object.get("type") {
        Some(Json::String(word)) => named(word, object, root, depth),
        Some(Json::Array(words)) => {
            let mut present = words.iter().filter_map(Json::as_str).filter(|word| *word != "null");
            let is_optional = words.iter().any(|word| word == "null");
            let (Some(word), None) = (present.next(), present.next()) else { return Type::Any };
            let found = named(word, object, root, depth);
            if is_optional { Type::Optional(Box::new(found)) } else { found }
        }
        _ if object.contains_key("properties") => named("object", object, root, depth),
        _ => Type::Any,
    }
}

/// A choice of one type and null is optional; other choices cannot be expressed.
fn choice(choices: &[Json], root: &Json, depth: usize) -> Type {
    let is_null = |choice: &&Json| choice.get("type").is_some_and(|word| word == "null");
    let mut present = choices.iter().filter(|choice| !is_null(choice));
    match (present.next(), present.next()) {
        (Some(only), None) if choices.len() > 1 => Type::Optional(Box::new(read(only, root, depth + 1))),
        (Some(only), None) => read(only, root, depth + 1),
        _ => Type::Any,
    }
}

fn named(word: &str, schema: &Map<String, Json>, root: &Json, depth: usize) -> Type {
    match word {
        "string" => Type::String,
        "integer" => Type::Int,
        "number" => Type::Float,
        "boolean" => Type::Bool,
        "array" => {
            let items = schema.get("items").map_or(Type::Any, |items| read(items, root, depth + 1));
            Type::List(Box::new(items))
        }
        "object" => match schema.get("properties").and_then(Json::as_object) {
            Some(properties) if !properties.is_empty() => {
                let required: Vec<&str> = schema
                    .get("required")
                    .and_then(Json::as_array)
                    .map(|names| names.iter().filter_map(Json::as_str).collect())
                    .unwrap_or_default();
                let field = |(name, holds): (&String, &Json)| {
                    let found = read(holds, root, depth + 1);
                    let is_unchanged = required.contains(&name.as_str()) || found.is_optional();
                    let holds = if is_unchanged { found } else { Type::Optional(Box::new(found)) };
                    Field { name: name.clone(), holds }
                };
                Type::Object(properties.iter().map(field).collect())
            }
            _ => Type::Map,
        },
        _ => Type::Any,
    }
}
