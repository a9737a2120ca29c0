//! Content that may be too large for a record.
//!
//! A [`Large`] is its content while that is small, and a reference to an object once it is large: records stay small
//! enough to be read in one go, and equal content is stored once. Moving content out (*spilling*) and putting it back
//! (*hydrating*) changes where it lies and nothing else.
//!
//! In JSON the two forms have two names, `text` and `text_object`, so that a text that looks like a reference is still a
//! text. Both at once are refused.

use std::sync::Arc;

use serde_json::Value;

use super::MessageError;
use crate::object::{INLINE_LIMIT, Object, ObjectRef};
use crate::storable;

/// Content, or the object that holds it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Large<T> {
    /// The content itself.
    Inline(T),
    /// The object that holds the content.
    Object(ObjectRef),
}

impl<T> Large<T> {
    /// The content, unless an object holds it.
    pub fn inline(&self) -> Option<&T> {
        match self {
            Self::Inline(content) => Some(content),
            Self::Object(_) => None,
        }
    }

    /// The object that holds the content, if one does.
    pub fn object(&self) -> Option<ObjectRef> {
        match self {
            Self::Inline(_) => None,
            Self::Object(reference) => Some(*reference),
        }
    }

    /// The one of two fields that is there.
    fn one_of(
        (inline_field, inline): (&'static str, Option<T>),
        (object_field, object): (&'static str, Option<ObjectRef>),
    ) -> Result<Option<Self>, MessageError> {
        match (inline, object) {
            (Some(_), Some(_)) => Err(MessageError::Ambiguous { inline: inline_field, object: object_field }),
            (Some(content), None) => Ok(Some(Self::Inline(content))),
            (None, Some(reference)) => Ok(Some(Self::Object(reference))),
            (None, None) => Ok(None),
        }
    }
}

impl<T> From<T> for Large<T> {
    fn from(content: T) -> Self {
        Self::Inline(content)
    }
}

impl Large<Arc<str>> {
    pub(super) fn spill(&mut self, objects: &mut Vec<Object>) {
        if let Self::Inline(text) = self
            && text.len() > INLINE_LIMIT
        {
            *self = Self::Object(store(Arc::clone(text).into(), objects));
        }
    }

    pub(super) fn hydrate(&mut self, source: &mut Source<'_>) -> Result<(), MessageError> {
        if let Self::Object(reference) = *self {
            *self = Self::Inline(source.text("text", reference)?);
        }
        Ok(())
    }
}

impl Large<Value> {
    pub(super) fn spill(&mut self, objects: &mut Vec<Object>) {
        if let Self::Inline(value) = self {
            let text = value.to_string();
            if text.len() > INLINE_LIMIT {
                *self = Self::Object(store(text.into_bytes().into(), objects));
            }
        }
    }

    pub(super) fn hydrate(&mut self, source: &mut Source<'_>) -> Result<(), MessageError> {
        if let Self::Object(reference) = *self {
            *self = Self::Inline(source.json("result", reference)?);
        }
        Ok(())
    }
}

pub(super) fn store(bytes: Arc<[u8]>, objects: &mut Vec<Object>) -> ObjectRef {
    let object = Object::blob(bytes);
    let reference = object.to_ref();
    objects.push(object);
    reference
}

/// Where spilled content comes back from.
pub(super) struct Source<'a>(pub(super) &'a mut dyn FnMut(ObjectRef) -> Option<Arc<[u8]>>);

impl Source<'_> {
    pub(super) fn text(
        &mut self,
        field: &'static str,
        reference: ObjectRef,
    ) -> Result<Arc<str>, MessageError> {
        let bytes = self.bytes(field, reference)?;
        let object = reference.object;
        std::str::from_utf8(&bytes).map(Arc::from).map_err(|source| MessageError::ObjectNotText {
            field,
            object,
            source,
        })
    }

    fn json(&mut self, field: &'static str, reference: ObjectRef) -> Result<Value, MessageError> {
        let bytes = self.bytes(field, reference)?;
        let object = reference.object;
        let value = serde_json::from_slice(&bytes).map_err(|source| MessageError::ObjectNotJson {
            field,
            object,
            source,
        })?;
        storable::check(&value).map_err(|problem| MessageError::NotStorable { field, problem })?;
        Ok(value)
    }

    fn bytes(&mut self, field: &'static str, reference: ObjectRef) -> Result<Arc<[u8]>, MessageError> {
        let ObjectRef { object, length: expected } = reference;
        let bytes = (self.0)(reference).ok_or(MessageError::MissingObject { field, object })?;
        let found = bytes.len() as u64;
        if found == expected {
            Ok(bytes)
        } else {
            Err(MessageError::ObjectLength { field, object, expected, found })
        }
    }
}

/// How the text of a text part is written; for `serde(flatten, with)`.
pub(super) mod text_fields {
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

    use super::*;

    #[derive(Serialize)]
    struct Written<'a> {
        #[serde(skip_serializing_if = "Option::is_none")]
        text: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        text_object: Option<ObjectRef>,
    }

    #[derive(Deserialize)]
    struct Read {
        text: Option<Arc<str>>,
        text_object: Option<ObjectRef>,
    }

    pub(crate) fn serialize<S: Serializer>(text: &Large<Arc<str>>, serializer: S) -> Result<S::Ok, S::Error> {
        Written { text: text.inline().map(AsRef::as_ref), text_object: text.object() }.serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Large<Arc<str>>, D::Error> {
        let read = Read::deserialize(deserializer)?;
        Large::one_of(("text", read.text), ("text_object", read.text_object))
            .and_then(|text| text.ok_or(MessageError::Missing { field: "text" }))
            .map_err(de::Error::custom)
    }
}

/// How the result of an option is written; for `serde(flatten, with)`.
pub(super) mod result_fields {
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

    use super::*;

    #[derive(Serialize)]
    struct Written<'a> {
        #[serde(skip_serializing_if = "Option::is_none")]
        result: Option<&'a Value>,
        #[serde(skip_serializing_if = "Option::is_none")]
        result_object: Option<ObjectRef>,
    }

    #[derive(Deserialize)]
    struct Read {
        // A `null` that is there is told apart from a result that is not.
        #[serde(default, deserialize_with = "present")]
        result: Option<Value>,
        result_object: Option<ObjectRef>,
    }

    fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
        Value::deserialize(deserializer).map(Some)
    }

    pub(crate) fn serialize<S: Serializer>(result: &Large<Value>, serializer: S) -> Result<S::Ok, S::Error> {
        Written { result: result.inline(), result_object: result.object() }.serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Large<Value>, D::Error> {
        let read = Read::deserialize(deserializer)?;
        if let Some(value) = &read.result {
            storable::check(value)
                .map_err(|problem| MessageError::NotStorable { field: "result", problem })
                .map_err(de::Error::custom)?;
        }
        Large::one_of(("result", read.result), ("result_object", read.result_object))
            .map(|result| result.unwrap_or(Large::Inline(Value::Null)))
            .map_err(de::Error::custom)
    }
}
