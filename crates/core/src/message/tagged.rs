//! Decodes objects whose field `kind` selects their type.
//!
//! This is stricter than a derived deserializer: the kind is a word and nothing else (a derived one also
//! accepts the number of a variant if its input was buffered), an unknown word is an error that lists the
//! known ones, the object is an object and not an array, and a second `kind` is refused. If the kind comes
//! first, as in everything that Backstitch writes, nothing is buffered.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::{MapAccessDeserializer, MapDeserializer};
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, Error as _, IntoDeserializer, MapAccess, Visitor,
};
use serde_json::Value;

const TAG: &str = "kind";

/// A kind that can decode the fields of its objects.
pub(super) trait Kind: DeserializeOwned {
    /// The decoded type.
    type Object;

    /// Decodes the fields other than `kind`.
    fn read<'de, D: Deserializer<'de>>(self, fields: D) -> Result<Self::Object, D::Error>;
}

/// Decodes an object with a kind.
pub(super) fn read<'de, K: Kind, D: Deserializer<'de>>(deserializer: D) -> Result<K::Object, D::Error> {
    deserializer.deserialize_map(TaggedContent::<K>(PhantomData))
}

struct TaggedContent<K>(PhantomData<K>);

impl<'de, K: Kind> Visitor<'de> for TaggedContent<K> {
    type Value = K::Object;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object with a `kind`")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<K::Object, A::Error> {
        let mut before: Vec<(String, Value)> = Vec::new();
        while let Some(name) = map.next_key::<String>()? {
            if name != TAG {
                before.push((name, map.next_value()?));
                continue;
            }
            let kind: K = map.next_value()?;
            let mut rest = ContentFields(map);
            if before.is_empty() {
                return kind.read(MapAccessDeserializer::new(rest));
            }
            while let Some(field) = rest.next_entry()? {
                before.push(field);
            }
            let fields = MapDeserializer::<_, serde_json::Error>::new(before.into_iter());
            return kind.read(fields).map_err(A::Error::custom);
        }
        Err(A::Error::missing_field(TAG))
    }
}

/// The fields after the kind. Another kind among them would be kept as an unknown field, and be written
/// twice.
struct ContentFields<A>(A);

impl<'de, A: MapAccess<'de>> MapAccess<'de> for ContentFields<A> {
    type Error = A::Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        match self.0.next_key::<String>()? {
            None => Ok(None),
            Some(name) if name == TAG => Err(A::Error::duplicate_field(TAG)),
            Some(name) => seed.deserialize(name.into_deserializer()).map(Some),
        }
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        self.0.next_value_seed(seed)
    }

    fn size_hint(&self) -> Option<usize> {
        self.0.size_hint()
    }
}
