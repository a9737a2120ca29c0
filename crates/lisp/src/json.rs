//! Values to and from JSON.
//!
//! An input object becomes a map. All of its keys are keywords, whatever the data, as Clojure's libraries make
//! them: so `sort`, `name` and `case` work the same for every object, and a program does not depend on which
//! keys happen to be there. Lookups accept the keyword or the string. Integers of any size stay exact; other
//! numbers are doubles.
//!
//! In output, a keyword is the string of its name, and so is a key; where a schema names the properties, a
//! key with `-` for the schema's `_` takes the schema's spelling, and no other key changes. A ratio is the
//! nearest double, a set and a sequence are arrays, a character is a string, a date is its ISO text. Values
//! without a JSON form are errors: infinities and NaN, functions, atoms, two keys that become equal, a
//! sequence that has not been realised.

use std::borrow::Cow;
use std::collections::HashMap;

use num_bigint::BigInt;
use serde_json::{Map as Object, Number, Value as Json};

use crate::error::{Error, ErrorKind, Result};
use crate::limits::Limits;
use crate::printer::temporal_json;
use crate::value::{Cursor, CursorStep, Map, Value};

/// Converts a JSON document to a value.
pub fn from_json(json: &Json, limits: &Limits) -> Result<Value> {
    value_of(json, 0, limits, &mut KeyMaker::new(Keys::Keywords))
}

/// The type of object keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Keys {
    /// Keywords only, also those that cannot be written as one.
    Keywords,
    /// Strings only.
    Strings,
}

/// Creates the keys of the objects of a document. Equal keys, as in the rows of a table, share their storage.
pub(crate) struct KeyMaker {
    keys: Keys,
    known: HashMap<Box<str>, Value>,
}

impl KeyMaker {
    /// The number of cached keys. A document with more distinct keys is not a table.
    const MOST_KNOWN: usize = 1024;

    pub(crate) fn new(keys: Keys) -> Self {
        Self { keys, known: HashMap::new() }
    }

    /// Returns the key with this name.
    pub(crate) fn key(&mut self, name: &str) -> Value {
        if let Some(known) = self.known.get(name) {
            return known.clone();
        }
        let key = match self.keys {
            Keys::Keywords => Value::keyword(name),
            Keys::Strings => Value::string(name),
        };
        if self.known.len() < Self::MOST_KNOWN {
            self.known.insert(name.into(), key.clone());
        }
        key
    }
}

fn value_of(json: &Json, depth: u32, limits: &Limits, keys: &mut KeyMaker) -> Result<Value> {
    limits.check_depth(depth)?;
    Ok(match json {
        Json::Null => Value::Nil,
        Json::Bool(value) => Value::Boolean(*value),
        Json::Number(number) => number_value(number),
        Json::String(text) => {
            limits.check_string(text.len())?;
            Value::string(text.as_str())
        }
        Json::Array(items) => {
            limits.check_collection(items.len())?;
            let items: Result<Vec<Value>> =
                items.iter().map(|item| value_of(item, depth + 1, limits, keys)).collect();
            Value::vector(items?)
        }
        Json::Object(entries) => {
            limits.check_collection(entries.len())?;
            let mut map = Map::new();
            for (key, item) in entries {
                map.insert(keys.key(key), value_of(item, depth + 1, limits, keys)?);
            }
            Value::Map(map.flexible())
        }
    })
}

fn number_value(number: &Number) -> Value {
    if let Some(integer) = number.as_i64() {
        return Value::Integer(integer);
    }
    if let Some(large) = number.as_u64() {
        return crate::value::number::big(BigInt::from(large));
    }
    Value::Float(number.as_f64().unwrap_or(f64::NAN))
}

/// The most values in a JSON document that is built from a value.
const MOST_VALUES: u64 = 1 << 20;

/// Converts a value to JSON. An optional JSON schema determines the spelling of its keys.
///
/// A few values that share their parts may unfold into billions, so their number is bounded.
pub fn to_json(value: &Value, schema: Option<&Json>) -> Result<Json> {
    if value.shape().weight() > MOST_VALUES {
        let message = format!("as JSON the value would have more than {MOST_VALUES} parts");
        return Err(Error::new(ErrorKind::SizeExceeded, message).hint("leave out what is not needed"));
    }
    json_of(value, schema)
}

fn json_of(value: &Value, schema: Option<&Json>) -> Result<Json> {
    Ok(match value {
        Value::Nil => Json::Null,
        Value::Boolean(value) => Json::Bool(*value),
        Value::Integer(value) => Json::Number((*value).into()),
        Value::BigInteger(value) => match u64::try_from(&**value) {
            Ok(small) => Json::Number(small.into()),
            Err(_) => match i64::try_from(&**value) {
                Ok(small) => Json::Number(small.into()),
                Err(_) => {
                    return Err(unable("an integer beyond 64 bits")
                        .hint("write it as a string with `str`, or as a `double`"));
                }
            },
        },
        Value::Float(value) => number_of(*value)?,
        Value::Ratio(value) => number_of(value.to_f64())?,
        Value::Character(value) => Json::String(value.to_string()),
        Value::String(text) => Json::String(text.as_str().to_owned()),
        Value::Keyword(name) => Json::String(name.full().to_owned()),
        Value::Symbol(name) => Json::String(name.full().to_owned()),
        Value::Temporal(temporal) => Json::String(temporal_json(temporal)),
        Value::Regex(pattern) => Json::String(pattern.source.to_string()),
        Value::Map(map) => Json::Object(object_of(map, schema)?),
        Value::Vector(_) | Value::Set(_) | Value::List(_) | Value::Sequence(_) | Value::Lazy(_) => {
            let schema = items_schema(schema);
            let mut items = Vec::new();
            let mut cursor = Cursor::new(value).unwrap_or(Cursor::End);
            loop {
                match cursor.next() {
                    CursorStep::Item(item) => items.push(json_of(&item, schema)?),
                    CursorStep::End => break Json::Array(items),
                    CursorStep::Blocked(_) => return Err(unable("a sequence that has not been realised")),
                }
            }
        }
        other => return Err(unable(&format!("a value of type {}", other.type_name()))),
    })
}

fn number_of(value: f64) -> Result<Json> {
    Number::from_f64(value).map(Json::Number).ok_or_else(|| unable(&crate::printer::double_text(value)))
}

fn unable(what: &str) -> Error {
    Error::new(ErrorKind::NotRepresentable, format!("JSON cannot hold {what}"))
}

fn items_schema(schema: Option<&Json>) -> Option<&Json> {
    schema?.get("items")
}

fn object_of(map: &Map, schema: Option<&Json>) -> Result<Object<String, Json>> {
    let properties = schema.and_then(|schema| schema.get("properties")).and_then(Json::as_object);
    let mut object = Object::new();
    for (key, value) in map {
        let name = spell(key_name(key)?, properties);
        let schema = properties.and_then(|properties| properties.get(&*name));
        let json = json_of(value, schema)?;
        if object.insert(name.clone().into_owned(), json).is_some() {
            return Err(unable(&format!("two entries of the name {name:?}"))
                .hint("a keyword and a string of the same name are one key in JSON"));
        }
    }
    Ok(object)
}

/// Returns the schema's spelling of a key, if the schema has that spelling and not the key's own.
fn spell<'a>(name: Cow<'a, str>, properties: Option<&Object<String, Json>>) -> Cow<'a, str> {
    if let Some(properties) = properties
        && name.contains('-')
        && !properties.contains_key(&*name)
    {
        let underscored = name.replace('-', "_");
        if properties.contains_key(&underscored) {
            return Cow::Owned(underscored);
        }
    }
    name
}

/// Returns the name of a key in JSON.
pub(crate) fn key_name(key: &Value) -> Result<Cow<'_, str>> {
    Ok(match key {
        Value::Keyword(name) => Cow::Borrowed(name.full()),
        Value::Symbol(name) => Cow::Borrowed(name.full()),
        Value::String(text) => Cow::Borrowed(text.as_str()),
        Value::Character(value) => Cow::Owned(value.to_string()),
        Value::Integer(value) => Cow::Owned(value.to_string()),
        Value::Boolean(value) => Cow::Borrowed(if *value { "true" } else { "false" }),
        Value::Nil => Cow::Borrowed("null"),
        Value::BigInteger(value) => {
            crate::value::integers::count_digits(value.bits());
            Cow::Owned(value.to_string())
        }
        Value::Ratio(_) | Value::Float(_) => {
            let mut text = String::new();
            crate::printer::print(key, crate::printer::Style::Str, usize::MAX, &mut text)?;
            Cow::Owned(text)
        }
        Value::Temporal(temporal) => Cow::Owned(temporal_json(temporal)),
        other => return Err(unable(&format!("a key of type {}", other.type_name()))),
    })
}
