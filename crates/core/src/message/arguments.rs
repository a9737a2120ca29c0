//! Arguments of a call, as an object and as received text.
//!
//! A model writes arguments as text that represents an object. [`Arguments`] keep both: the object for the
//! invocation, and the received text for display and for later requests, byte for byte. Text that is not a
//! JSON object is kept too, but never used for an invocation: it is *unparsable*, has no
//! [`object`](Arguments::object), and the call's result is an error. The same holds for an object that could
//! not be stored (see [`crate::storable`]).
//!
//! In JSON they are the field `arguments`, and `arguments_text` if the text differs from the compact JSON of
//! the object. If both are present, the object is parsed from the text again. Large arguments are stored as
//! an object of the store, `arguments_object`; until they are hydrated they have neither object nor text.

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value};

use super::MessageError;
use super::large::Source;
use crate::object::{INLINE_LIMIT, Object, ObjectRef};
use crate::storable;

/// The arguments of a call.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Read")]
pub struct Arguments(Form);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Form {
    /// The text is the compact JSON of the object.
    Object(Map<String, Value>),
    /// The text differs from the compact JSON of the object.
    Text { object: Option<Map<String, Value>>, text: Arc<str> },
    /// The text is an object of the store.
    Stored(ObjectRef),
}

impl Arguments {
    /// Creates arguments from an object.
    ///
    /// An object that could not be stored is kept as text, and is unparsable.
    pub fn from_object(object: Map<String, Value>) -> Self {
        match storable::check_object(&object) {
            Ok(()) => Self(Form::Object(object)),
            Err(_) => Self(Form::Text { object: None, text: Value::Object(object).to_string().into() }),
        }
    }

    /// Parses arguments from the received text.
    pub fn from_text(text: impl Into<Arc<str>>) -> Self {
        let text = text.into();
        match serde_json::from_str::<Map<String, Value>>(&text) {
            Ok(object) if storable::check_object(&object).is_ok() => {
                if compact(&object) == *text {
                    Self(Form::Object(object))
                } else {
                    Self(Form::Text { object: Some(object), text })
                }
            }
            _ => Self(Form::Text { object: None, text }),
        }
    }

    /// Creates empty arguments.
    pub fn none() -> Self {
        Self(Form::Object(Map::new()))
    }

    /// Returns the arguments by name, unless the text does not parse or is an object of the store.
    pub fn object(&self) -> Option<&Map<String, Value>> {
        match &self.0 {
            Form::Object(object) => Some(object),
            Form::Text { object, .. } => object.as_ref(),
            Form::Stored(_) => None,
        }
    }

    /// Returns the received text, or the compact JSON of arguments that were created from an object. It is
    /// empty while the text is an object of the store; see [`Arguments::stored`].
    pub fn text(&self) -> Cow<'_, str> {
        match &self.0 {
            Form::Object(object) => Cow::Owned(compact(object)),
            Form::Text { text, .. } => Cow::Borrowed(text),
            Form::Stored(_) => Cow::Borrowed(""),
        }
    }

    /// Returns whether the form of the arguments allows an invocation.
    pub fn is_parsable(&self) -> bool {
        self.object().is_some()
    }

    /// Returns the object of the store that holds the text, until it is hydrated.
    pub fn stored(&self) -> Option<ObjectRef> {
        match &self.0 {
            Form::Stored(reference) => Some(*reference),
            Form::Object(_) | Form::Text { .. } => None,
        }
    }

    pub(super) fn spill(&mut self, objects: &mut Vec<Object>) {
        let text = self.text();
        if text.len() > INLINE_LIMIT {
            let object = Object::blob(text.into_owned().into_bytes());
            self.0 = Form::Stored(object.to_ref());
            objects.push(object);
        }
    }

    pub(super) fn hydrate(&mut self, source: &mut Source<'_>) -> Result<(), MessageError> {
        if let Form::Stored(reference) = self.0 {
            *self = Self::from_text(source.content::<Arc<str>>("arguments", reference)?);
        }
        Ok(())
    }
}

fn compact(object: &Map<String, Value>) -> String {
    // Writing a JSON object to a string cannot fail.
    serde_json::to_string(object).unwrap_or_default()
}

impl From<Map<String, Value>> for Arguments {
    fn from(object: Map<String, Value>) -> Self {
        Self::from_object(object)
    }
}

impl TryFrom<Value> for Arguments {
    type Error = MessageError;

    /// Refuses values that are not objects, or that could not be stored.
    fn try_from(value: Value) -> Result<Self, Self::Error> {
        let found = match value {
            Value::Object(object) => {
                storable::check_object(&object)
                    .map_err(|problem| MessageError::NotStorable { field: "arguments", problem })?;
                return Ok(Self::from_object(object));
            }
            Value::Null => "null",
            Value::Bool(_) => "a boolean",
            Value::Number(_) => "a number",
            Value::String(_) => "a string",
            Value::Array(_) => "an array",
        };
        Err(MessageError::ArgumentsNotObject { found })
    }
}

#[derive(Deserialize)]
struct Read {
    arguments: Option<Map<String, Value>>,
    arguments_text: Option<Arc<str>>,
    arguments_object: Option<ObjectRef>,
}

#[derive(Serialize)]
struct Written<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments: Option<&'a Map<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments_text: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments_object: Option<ObjectRef>,
}

impl TryFrom<Read> for Arguments {
    type Error = MessageError;

    fn try_from(read: Read) -> Result<Self, Self::Error> {
        let ambiguous = |inline| Err(MessageError::Ambiguous { inline, object: "arguments_object" });
        match (read.arguments, read.arguments_text, read.arguments_object) {
            (Some(_), _, Some(_)) => ambiguous("arguments"),
            (None, Some(_), Some(_)) => ambiguous("arguments_text"),
            (None, None, Some(reference)) => Ok(Self(Form::Stored(reference))),
            (_, Some(text), None) => Ok(Self::from_text(text)),
            (Some(object), None, None) => Value::Object(object).try_into(),
            (None, None, None) => Err(MessageError::Missing { field: "arguments" }),
        }
    }
}

impl Serialize for Arguments {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let arguments_text = match &self.0 {
            Form::Text { text, .. } => Some(text.as_ref()),
            Form::Object(_) | Form::Stored(_) => None,
        };
        Written { arguments: self.object(), arguments_text, arguments_object: self.stored() }
            .serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn json_of(arguments: &Arguments) -> Value {
        serde_json::to_value(arguments).unwrap()
    }

    #[test]
    fn text_is_kept_exactly_and_only_where_it_says_more() {
        let compact = Arguments::from_text(r#"{"b":1,"a":[2]}"#);
        assert_eq!(compact, Arguments::from_object(json!({"b": 1, "a": [2]}).as_object().unwrap().clone()));
        assert_eq!(json_of(&compact), json!({"arguments": {"b": 1, "a": [2]}}));
        assert_eq!(compact.text(), r#"{"b":1,"a":[2]}"#);

        for text in [r#"{ "a" : 1.0e0 }"#, r#"{"a":0,"a":1}"#, r#"{"a":-0}"#, r#"{"a":"\u0062"}"#] {
            let spaced = Arguments::from_text(text);
            assert!(spaced.is_parsable());
            assert_eq!(spaced.text(), text);
            assert_eq!(json_of(&spaced)["arguments_text"], json!(text));
            let again: Arguments = serde_json::from_value(json_of(&spaced)).unwrap();
            assert_eq!(again, spaced);
        }
    }

    #[test]
    fn text_that_is_no_object_is_kept_and_unparsable() {
        let bomb = format!(r#"{{"a":{}"#, "[".repeat(100_000));
        let deep = format!(r#"{{"a":{}{}}}"#, "[".repeat(100), "]".repeat(100));
        for text in
            ["", "null", "[1]", r#"{"a":"#, r#"{"a":1} {"#, "{'a': 1}", r#"{"a":"\ud800"}"#, &bomb, &deep]
        {
            let arguments = Arguments::from_text(text);
            assert!(!arguments.is_parsable(), "{text:.40}");
            assert_eq!(arguments.object(), None);
            assert_eq!(arguments.text(), text);
            let json = json_of(&arguments);
            assert_eq!(json, json!({"arguments_text": text}));
            assert_eq!(serde_json::from_value::<Arguments>(json).unwrap(), arguments);
        }
    }

    #[test]
    fn an_object_that_could_not_be_read_again_is_kept_as_text() {
        let private = json!({"a": 1, "$serde_json::private::RawValue": "]"});
        let arguments = Arguments::from_object(private.as_object().unwrap().clone());
        assert!(!arguments.is_parsable());
        assert_eq!(arguments.text(), private.to_string());
        let json = serde_json::to_string(&arguments).unwrap();
        assert_eq!(serde_json::from_str::<Arguments>(&json).unwrap(), arguments);
        assert!(matches!(Arguments::try_from(private), Err(MessageError::NotStorable { .. })));
    }

    #[test]
    fn the_text_counts_where_object_and_text_differ() {
        let json = json!({"arguments": {"a": 1}, "arguments_text": "{\"a\": 2}"});
        let arguments: Arguments = serde_json::from_value(json).unwrap();
        assert_eq!(arguments.object().unwrap()["a"], 2);
    }

    #[test]
    fn what_is_not_an_object_is_refused() {
        for (value, expected) in [
            (json!([1]), "an array"),
            (json!("{}"), "a string"),
            (json!(null), "null"),
            (json!(1), "a number"),
        ] {
            let error = Arguments::try_from(value.clone()).unwrap_err();
            assert!(matches!(error, MessageError::ArgumentsNotObject { found } if found == expected));
            assert!(serde_json::from_value::<Arguments>(json!({ "arguments": value })).is_err());
        }
    }
}
