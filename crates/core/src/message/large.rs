//! Content that may be too large for a record.
//!
//! A [`Large`] is its content while that is small, and a reference to an object once it is large: records
//! stay small enough to be read at once, and equal content is stored once. Moving content out (*spilling*)
//! and restoring it (*hydrating*) changes only where it is stored.
//!
//! In JSON the two forms have two names, `text` and `text_object`, so that a text that looks like a reference
//! is still a text. A structure with both is refused.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use serde::de::{DeserializeOwned, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserializer, Serialize, Serializer, de};
use serde_json::{Map, Value};

use super::MessageError;
use crate::json::from_bytes;
use crate::object::{INLINE_LIMIT, Object, ObjectContent, ObjectId, ObjectRef};
use crate::secrets::REDACTED;

/// Content, or the object that holds it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Large<T> {
    /// The content itself.
    Inline(T),
    /// The object that holds the content.
    Object(ObjectRef),
}

impl<T> Large<T> {
    /// Returns the content, unless an object holds it.
    pub fn inline(&self) -> Option<&T> {
        match self {
            Self::Inline(content) => Some(content),
            Self::Object(_) => None,
        }
    }

    /// Returns the object that holds the content, if there is one.
    pub fn object(&self) -> Option<ObjectRef> {
        match self {
            Self::Inline(_) => None,
            Self::Object(reference) => Some(*reference),
        }
    }
}

impl Large<Value> {
    /// Returns whether the content is `null`, which most records omit.
    pub(crate) fn is_null(&self) -> bool {
        self.inline().is_some_and(Value::is_null)
    }
}

impl<T: LargeContent> Large<T> {
    /// Returns the content as an object, if it is too large for a record.
    pub(crate) fn oversized(&self) -> Option<Object> {
        self.inline()?.to_large_bytes().map(Object::blob)
    }

    pub(crate) fn spill(&mut self, objects: &mut Vec<Object>) {
        if let Some(object) = self.oversized() {
            *self = Self::Object(object.to_ref());
            objects.push(object);
        }
    }

    pub(crate) fn hydrate(
        &mut self,
        field: &'static str,
        source: &mut Source<'_>,
    ) -> Result<(), MessageError> {
        if let Self::Object(reference) = *self {
            *self = Self::Inline(source.content(field, reference)?);
        }
        Ok(())
    }
}

impl<T> From<T> for Large<T> {
    fn from(content: T) -> Self {
        Self::Inline(content)
    }
}

impl From<&str> for Large<Arc<str>> {
    fn from(text: &str) -> Self {
        Self::Inline(text.into())
    }
}

impl From<String> for Large<Arc<str>> {
    fn from(text: String) -> Self {
        Self::Inline(text.into())
    }
}

/// Content that a [`Large`] can hold. It is stored as JSON, unless its type says otherwise.
pub trait LargeContent: Serialize + DeserializeOwned {
    /// Returns the bytes of the object for the content, if they exceed [`INLINE_LIMIT`].
    fn to_large_bytes(&self) -> Option<Arc<[u8]>> {
        serde_json::to_vec(self).ok().filter(|text| text.len() > INLINE_LIMIT).map(Into::into)
    }

    /// Decodes the content from the bytes of its object.
    fn from_bytes(field: &'static str, object: ObjectId, bytes: &[u8]) -> Result<Self, MessageError> {
        from_bytes(bytes).map_err(|source| MessageError::ObjectNotJson { field, object, source })
    }

    /// Returns the default of a missing field.
    fn absent(field: &'static str) -> Result<Self, MessageError> {
        Err(MessageError::Missing { field })
    }

    /// What stands for content that a redaction removed.
    fn redacted(field: &'static str, object: ObjectId) -> Result<Self, MessageError> {
        Err(MessageError::Redacted { field, object })
    }
}

impl LargeContent for Arc<str> {
    fn to_large_bytes(&self) -> Option<Arc<[u8]>> {
        (self.len() > INLINE_LIMIT).then(|| self.clone().into())
    }

    fn from_bytes(field: &'static str, object: ObjectId, bytes: &[u8]) -> Result<Self, MessageError> {
        let not_text = |source| MessageError::ObjectNotText { field, object, source };
        std::str::from_utf8(bytes).map(Self::from).map_err(not_text)
    }

    fn redacted(_: &'static str, _: ObjectId) -> Result<Self, MessageError> {
        Ok(REDACTED.into())
    }
}

impl LargeContent for Value {
    fn absent(_: &'static str) -> Result<Self, MessageError> {
        Ok(Self::Null)
    }

    fn redacted(_: &'static str, _: ObjectId) -> Result<Self, MessageError> {
        Ok(REDACTED.into())
    }
}

impl LargeContent for Map<String, Value> {}

/// A source of spilled content.
pub(crate) struct Source<'a>(pub(crate) &'a mut dyn FnMut(ObjectRef) -> Option<ObjectContent>);

impl Source<'_> {
    /// Returns whether a redaction removed the content of an object.
    pub(super) fn is_redacted(&mut self, object: ObjectId) -> bool {
        (self.0)(ObjectRef { object, length: 0 }) == Some(ObjectContent::Redacted)
    }

    pub(super) fn content<T: LargeContent>(
        &mut self,
        field: &'static str,
        reference: ObjectRef,
    ) -> Result<T, MessageError> {
        let ObjectRef { object, length: expected } = reference;
        let content = (self.0)(reference).ok_or(MessageError::MissingObject { field, object })?;
        let ObjectContent::Bytes(bytes) = content else { return T::redacted(field, object) };
        let found = bytes.len() as u64;
        if found != expected {
            return Err(MessageError::ObjectLength { field, object, expected, found });
        }
        T::from_bytes(field, object, &bytes)
    }
}

/// A field of a stored structure that holds a [`Large`], always or optionally.
pub(crate) trait LargeField: Sized {
    /// Type of the content.
    type Content: LargeContent;

    /// Returns the content or its reference.
    fn large(&self) -> Option<&Large<Self::Content>>;

    /// Returns the content or its reference for changes.
    fn large_mut(&mut self) -> Option<&mut Large<Self::Content>>;

    /// Converts the decoded field.
    fn from_large(field: &'static str, large: Option<Large<Self::Content>>) -> Result<Self, MessageError>;
}

impl<T: LargeContent> LargeField for Large<T> {
    type Content = T;

    fn large(&self) -> Option<&Self> {
        Some(self)
    }

    fn large_mut(&mut self) -> Option<&mut Self> {
        Some(self)
    }

    fn from_large(field: &'static str, large: Option<Self>) -> Result<Self, MessageError> {
        large.map_or_else(|| T::absent(field).map(Self::Inline), Ok)
    }
}

impl<T: LargeContent> LargeField for Option<Large<T>> {
    type Content = T;

    fn large(&self) -> Option<&Large<T>> {
        self.as_ref()
    }

    fn large_mut(&mut self) -> Option<&mut Large<T>> {
        self.as_mut()
    }

    fn from_large(_: &'static str, large: Self) -> Result<Self, MessageError> {
        Ok(large)
    }
}

/// Defines modules for `serde(flatten, with)` of fields with these names.
macro_rules! large_fields {
    ($($field:ident),*) => {$(
        pub(crate) mod $field {
            use super::*;

            const NAMES: &[&str] = &[stringify!($field), concat!(stringify!($field), "_object")];

            pub(crate) fn serialize<F: LargeField, S: Serializer>(field: &F, to: S) -> Result<S::Ok, S::Error> {
                write(NAMES, field, to)
            }

            pub(crate) fn deserialize<'de, F: LargeField, D: Deserializer<'de>>(from: D) -> Result<F, D::Error> {
                from.deserialize_struct("Large", NAMES, Fields(NAMES, PhantomData))
            }
        }
    )*};
}

large_fields!(text, result, arguments, output, source, value, data, state, payload);

fn write<F: LargeField, S: Serializer>(names: &[&str], field: &F, serializer: S) -> Result<S::Ok, S::Error> {
    let mut fields = serializer.serialize_map(None)?;
    match field.large() {
        Some(Large::Inline(content)) => fields.serialize_entry(names[0], content)?,
        Some(Large::Object(reference)) => fields.serialize_entry(names[1], reference)?,
        None => {}
    }
    fields.end()
}

/// Decodes whichever of two fields is present. A `null` is present, but has no content.
struct Fields<F>(&'static [&'static str], PhantomData<F>);

impl<'de, F: LargeField> Visitor<'de> for Fields<F> {
    type Value = F;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "a structure with `{}` or `{}`", self.0[0], self.0[1])
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<F, A::Error> {
        let (inline, object) = (self.0[0], self.0[1]);
        let (mut content, mut reference) = (None, None);
        while let Some(name) = fields.next_key::<String>()? {
            let is_again = if name == inline {
                content.replace(fields.next_value::<Option<F::Content>>()?).is_some()
            } else if name == object {
                reference.replace(fields.next_value::<Option<ObjectRef>>()?).is_some()
            } else {
                fields.next_value::<de::IgnoredAny>().map(|_| false)?
            };
            if is_again {
                return Err(de::Error::custom(format!("duplicate field `{name}`")));
            }
        }
        let large = match (content, reference.flatten()) {
            (Some(_), Some(_)) => return Err(de::Error::custom(MessageError::Ambiguous { inline, object })),
            (content, None) => content.flatten().map(Large::Inline),
            (None, Some(reference)) => Some(Large::Object(reference)),
        };
        F::from_large(inline, large).map_err(de::Error::custom)
    }
}
