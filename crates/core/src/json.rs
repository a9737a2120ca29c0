//! Limits on JSON from outside.
//!
//! Text from a file, a store or a model is checked for length and depth before it is parsed. The check is one
//! pass over the bytes, allocates nothing and never recurses, so hostile input costs no more than its length.

use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, de};
use serde_json::value::RawValue;

/// Limits on the size and depth of a JSON text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JsonLimits {
    /// Largest number of bytes of a text.
    pub bytes: usize,
    /// Largest number of arrays and objects around a value.
    pub depth: usize,
}

impl Default for JsonLimits {
    /// 256 MiB and 96 levels. The parser itself fails at 128 levels.
    fn default() -> Self {
        Self { bytes: 256 * 1024 * 1024, depth: 96 }
    }
}

/// The text exceeds a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LimitExceeded {
    /// The text is too long.
    #[error("{bytes} bytes of JSON are more than the limit of {limit}")]
    Bytes {
        /// Length of the text.
        bytes: usize,
        /// Largest length allowed.
        limit: usize,
    },
    /// The text nests too deeply.
    #[error("JSON nests deeper than the limit of {limit} levels")]
    Depth {
        /// Largest depth allowed.
        limit: usize,
    },
}

impl JsonLimits {
    /// Refuses a text that is longer or deeper than these limits. Does not check whether the text is JSON.
    pub fn check(&self, text: &[u8]) -> Result<(), LimitExceeded> {
        if text.len() > self.bytes {
            return Err(LimitExceeded::Bytes { bytes: text.len(), limit: self.bytes });
        }
        // A text without so many brackets cannot be too deep, wherever they are. Counting is much faster than following strings,
        // and nearly all texts have few.
        let brackets: usize = text.iter().map(|byte| usize::from(matches!(byte, b'[' | b'{'))).sum();
        if brackets <= self.depth {
            return Ok(());
        }
        let (mut depth, mut in_string, mut escaped) = (0usize, false, false);
        for byte in text {
            if in_string {
                match byte {
                    _ if escaped => escaped = false,
                    b'\\' => escaped = true,
                    b'"' => in_string = false,
                    _ => {}
                }
                continue;
            }
            match byte {
                b'"' => in_string = true,
                b'[' | b'{' => {
                    depth += 1;
                    if depth > self.depth {
                        return Err(LimitExceeded::Depth { limit: self.depth });
                    }
                }
                b']' | b'}' => depth = depth.saturating_sub(1),
                _ => {}
            }
        }
        Ok(())
    }
}

/// Parses a JSON text. It is read as a `str`, so that a type is compiled for one kind of text.
pub(crate) fn from_bytes<'de, T: Deserialize<'de>>(bytes: &'de [u8]) -> Result<T, serde_json::Error> {
    serde_json::from_str(to_text(bytes)?)
}

/// Fails for bytes that are not UTF-8, with the place of the first error.
fn to_text(bytes: &[u8]) -> Result<&str, serde_json::Error> {
    std::str::from_utf8(bytes).map_err(|error| match serde_json::from_slice::<serde_json::Value>(bytes) {
        Err(error) => error,
        Ok(_) => de::Error::custom(error),
    })
}

/// The fields of an object in the order of the text, duplicates included.
pub(crate) struct RawFields<'a>(pub(crate) Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for RawFields<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = RawFields<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RawFields<'de>, A::Error> {
                let fields = std::iter::from_fn(|| map.next_entry::<String, &'de RawValue>().transpose());
                fields.collect::<Result<_, _>>().map(RawFields)
            }
        }
        deserializer.deserialize_map(Object)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_counts_what_encloses_and_not_what_stands_in_strings() {
        let limits = JsonLimits { bytes: 100, depth: 2 };
        assert_eq!(limits.check(br#"{"a":["[[[[{{{{\"["]}"#), Ok(()));
        assert_eq!(limits.check(b"[[],[],{}]"), Ok(()));
        assert_eq!(limits.check(b"[[[]]]"), Err(LimitExceeded::Depth { limit: 2 }));
    }

    #[test]
    fn length_is_checked_first() {
        let limits = JsonLimits { bytes: 3, depth: 1 };
        assert_eq!(limits.check(b"[[[["), Err(LimitExceeded::Bytes { bytes: 4, limit: 3 }));
    }
}
