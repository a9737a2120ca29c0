//! Structured answers.
//!
//! An [`Output`] describes the answer by a JSON Schema, and defines its use: a value whose type is an event
//! is passed to the reducers of its type in the batch that ends the evaluation. This module extracts an
//! answer from a text. The schema is checked where schemas are compiled.

use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize as _;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::extract::{NoJson, extract};
use crate::json::JsonLimits;
use crate::session::{BoxError, Draft, Event};
use crate::storable;
use crate::tool::schema_of;

type Parse = dyn Fn(&Value) -> Result<(), serde_json::Error> + Send + Sync;
type Dispatch = dyn Fn(&Value, &mut Draft) -> Result<(), BoxError> + Send + Sync;

/// The field that wraps an array if only objects can be requested.
const ITEMS: &str = "items";

/// The field that wraps any other value that is not an object.
const VALUE: &str = "value";

/// Largest depth of an answer, so that its record can be decoded again.
const DEEPEST: usize = 64;

/// Schema and use of an answer. A clone is cheap.
#[derive(Clone)]
pub struct Output {
    schema: Arc<Value>,
    described: bool,
    parse: Option<Arc<Parse>>,
    dispatch: Option<Arc<Dispatch>>,
}

impl Output {
    /// Describes a value of this type, which is passed to the reducers of its type. Unknown fields are
    /// refused, unless the schema allows them.
    pub fn of<T: Event + DeserializeOwned + JsonSchema>() -> Self {
        let mut output = Self::value::<T>();
        let dispatch = |value: &Value, draft: &mut Draft| -> Result<(), BoxError> {
            draft.dispatch(T::deserialize(value)?)?;
            Ok(())
        };
        output.dispatch = Some(Arc::new(dispatch));
        output
    }

    /// Describes a list of values of this type, each of which is passed to the reducers of its type.
    pub fn list_of<T: Event + DeserializeOwned + JsonSchema>() -> Self {
        let mut output = Self::value::<Vec<T>>();
        let dispatch = |value: &Value, draft: &mut Draft| -> Result<(), BoxError> {
            for item in Vec::<T>::deserialize(value)? {
                draft.dispatch(item)?;
            }
            Ok(())
        };
        output.dispatch = Some(Arc::new(dispatch));
        output
    }

    /// Describes a value of this type that is returned to the caller and passed to no reducer.
    pub fn value<T: DeserializeOwned + JsonSchema + 'static>() -> Self {
        let mut schema = schema_of::<T>();
        refuse_unknown_fields(&mut schema);
        let parse: Arc<Parse> = Arc::new(|value: &Value| T::deserialize(value).map(|_| ()));
        Self { parse: Some(parse), ..Self::schema_only(schema) }
    }

    /// Describes any value that fits this JSON Schema.
    pub fn schema_only(schema: Value) -> Self {
        Self { schema: Arc::new(schema), described: true, parse: None, dispatch: None }
    }

    /// Omits the description of the answer from the prompt, for models that receive it by other means.
    #[must_use]
    pub fn undescribed(mut self) -> Self {
        self.described = false;
        self
    }

    /// The schema.
    pub fn schema(&self) -> &Arc<Value> {
        &self.schema
    }

    /// Returns the schema for a provider, which accepts only objects: an array is wrapped in the field
    /// `items`, and any other value that is not an object in the field `value`.
    pub fn wire_schema(&self) -> Arc<Value> {
        let Some(field) = self.wrapping() else { return self.schema.clone() };
        let mut inner = (*self.schema).clone();
        let mut wrapped = Map::new();
        if let Some(schema) = inner.as_object_mut() {
            // References are relative to the outermost schema.
            for outermost in ["$schema", "$defs", "definitions"] {
                if let Some(value) = schema.remove(outermost) {
                    wrapped.insert(outermost.to_owned(), value);
                }
            }
        }
        wrapped.insert("type".to_owned(), json!("object"));
        wrapped.insert("properties".to_owned(), json!({ field: inner }));
        wrapped.insert("required".to_owned(), json!([field]));
        wrapped.insert("additionalProperties".to_owned(), json!(false));
        Arc::new(Value::Object(wrapped))
    }

    /// Extracts the value from a text.
    pub fn read(&self, text: &str) -> Result<Value, NoJson> {
        extract(text).and_then(|value| self.take(value))
    }

    /// Unwraps a structured value. Fails if it could not be stored.
    pub fn take(&self, value: Value) -> Result<Value, NoJson> {
        let refused = |error: &dyn fmt::Display| NoJson { reason: error.to_string() };
        storable::check(&value).map_err(|error| refused(&error))?;
        let limits = JsonLimits { depth: DEEPEST, ..JsonLimits::default() };
        limits.check(value.to_string().as_bytes()).map_err(|error| refused(&error))?;
        Ok(value)
    }

    /// Unwraps a value that may be wrapped according to the [schema for providers](Self::wire_schema).
    pub fn unwrapped<'a>(&self, value: &'a Value) -> Option<&'a Value> {
        let field = self.wrapping()?;
        value.as_object().filter(|object| object.len() == 1)?.get(field)
    }

    /// Checks whether the type accepts a value that fits the schema, which may be wider than the type.
    pub fn check(&self, value: &Value) -> Result<(), serde_json::Error> {
        self.parse.as_ref().map_or(Ok(()), |parse| parse(value))
    }

    /// Passes a value to the reducers of its type, if it has one.
    pub fn dispatch(&self, value: &Value, draft: &mut Draft) -> Result<(), BoxError> {
        self.dispatch.as_ref().map_or(Ok(()), |dispatch| dispatch(value, draft))
    }

    pub(super) fn is_described(&self) -> bool {
        self.described
    }

    /// Returns the instructions about the answer for the model.
    pub(super) fn description(&self) -> String {
        let schema = serde_json::to_string_pretty(&*self.schema).unwrap_or_else(|_| self.schema.to_string());
        format!(
            "When you are done, answer with JSON that fits this schema, and with nothing else:\n\n```json\n{schema}\n```"
        )
    }

    fn wrapping(&self) -> Option<&'static str> {
        match self.schema.get("type").and_then(Value::as_str) {
            Some("object") => None,
            Some("array") => Some(ITEMS),
            _ => Some(VALUE),
        }
    }
}

impl fmt::Debug for Output {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Output").field("schema", &self.schema).finish_non_exhaustive()
    }
}

/// Makes the outermost object, or that of an array's items, refuse unknown fields, so that a misspelt one is
/// not lost.
fn refuse_unknown_fields(schema: &mut Value) {
    let items = schema.get(ITEMS).cloned();
    let reference = items.as_ref().and_then(|items| items.get("$ref")).and_then(Value::as_str);
    let pointer = match (&items, reference) {
        (Some(_), Some(reference)) => reference.trim_start_matches('#').to_owned(),
        (Some(_), None) => format!("/{ITEMS}"),
        (None, _) => String::new(),
    };
    let Some(Value::Object(object)) = schema.pointer_mut(&pointer) else { return };
    let is_plain = object.get("type").is_some_and(|kind| kind == "object")
        && !["$ref", "allOf", "anyOf", "oneOf", "if"].iter().any(|word| object.contains_key(*word));
    if is_plain {
        object.entry("additionalProperties").or_insert(Value::Bool(false));
    }
}
