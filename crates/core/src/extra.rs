//! Fields that this version does not know.
//!
//! A journal may have been written by a newer version. An [`Extra`] is flattened into each stored structure,
//! collects the fields that the structure has no name for, and writes them back unchanged: decoding and
//! encoding again loses nothing. The values are never interpreted. An empty `Extra` is not written at all.
//!
//! Decoding never puts a known name of the structure into its `Extra`. An `Extra` that is filled by hand must
//! not hold such a name either, since the JSON would then hold it twice. Values that would change in storage
//! are refused; see [`crate::storable`].

use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::storable::{self, NotStorable};

/// Unknown fields, kept in the order in which they were read. Nearly all are empty, and an empty one is a pointer in size.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Map<String, Value>")]
pub struct Extra(Option<Box<Map<String, Value>>>);

impl Extra {
    /// Returns whether there are no unknown fields.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Returns the number of unknown fields.
    pub fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |fields| fields.len())
    }

    /// Returns the value of an unknown field.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.as_ref()?.get(name)
    }

    /// Iterates over the unknown fields and their values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        let fields = self.0.iter().flat_map(|fields| fields.iter());
        fields.map(|(name, value)| (name.as_str(), value))
    }
}

impl TryFrom<Map<String, Value>> for Extra {
    type Error = NotStorable;

    fn try_from(fields: Map<String, Value>) -> Result<Self, Self::Error> {
        storable::check_object(&fields)?;
        Ok(Self((!fields.is_empty()).then(|| Box::new(fields))))
    }
}

impl Serialize for Extra {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct StoredExtra {
        known: u8,
        #[serde(flatten)]
        extra: Extra,
    }

    #[test]
    fn unknown_fields_come_back_as_they_were() {
        let text = r#"{"known":1,"zeta":{"deep":[1,2.5,null]},"alpha":18446744073709551615}"#;
        let stored: StoredExtra = serde_json::from_str(text).unwrap();
        assert_eq!(stored.extra.len(), 2);
        assert_eq!(stored.extra.get("known"), None);
        assert_eq!(serde_json::to_string(&stored).unwrap(), text);
    }

    #[test]
    fn nothing_unknown_is_not_written() {
        let stored = StoredExtra { known: 1, extra: Extra::default() };
        assert!(stored.extra.is_empty());
        assert_eq!(serde_json::to_string(&stored).unwrap(), r#"{"known":1}"#);
    }

    #[test]
    fn what_would_not_come_back_is_refused() {
        let text = format!(r#"{{"known":1,"deep":{}{}}}"#, "[".repeat(100), "]".repeat(100));
        let error = serde_json::from_str::<StoredExtra>(&text).unwrap_err();
        assert!(error.to_string().contains("nests deeper than 64 levels"), "{error}");
    }
}
