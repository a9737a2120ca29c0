//! Redaction: replaces a value in stored records and contents.
//!
//! A value that must not be stored any more (a leaked key, a name) is replaced by [`MARKER`]. It is found as it is and as JSON text,
//! also where JSON is nested in strings of JSON, and a record whose text was replaced still decodes. What gives a record its
//! structure never changes: field names, ids, times, numbers outside of free-form data, and the names of tools, slices, resources,
//! prompts, policies, providers and models. Where the value is a part of those, it stays and is counted.
//!
//! Nothing here does IO: stores decide which records and objects a redaction concerns (see [`Store::redact`](crate::ports::Store::redact)).

mod document;
mod fields;
mod record;
mod search;

use std::collections::BTreeSet;
use std::fmt;

use record::TextRedaction;
pub use record::{ObjectCopies, ObjectCopy, RedactedText, redact_inbox_data, redact_record};
use search::Finder;

use crate::code::ErrorCode;
pub use crate::secrets::REDACTED as MARKER;
pub use crate::secrets::SHORTEST;

/// The marker for places that take no brackets, such as the address of media.
const PLAIN_MARKER: &str = "redacted";

/// A value that is to be removed. It is never printed.
#[derive(Clone)]
pub struct SensitiveValue(Finder);

/// A value cannot be redacted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ValueRefused {
    /// A short value occurs in too many texts that have nothing to do with it.
    #[error("the value has {characters} characters, and a redaction needs at least {SHORTEST}")]
    TooShort {
        /// The number of characters.
        characters: usize,
    },
    /// The value is a part of the marker that would replace it.
    #[error("the value is a part of `{MARKER}`, which would replace it")]
    Marker,
}

impl ValueRefused {
    /// The stable code of the error.
    pub fn code(self) -> ErrorCode {
        ErrorCode::ValueRefused
    }
}

impl SensitiveValue {
    /// Refuses a value that is too short, or that the marker contains.
    pub fn new(value: &str) -> Result<Self, ValueRefused> {
        let characters = value.chars().count();
        if characters < SHORTEST {
            return Err(ValueRefused::TooShort { characters });
        }
        if MARKER.contains(value) {
            return Err(ValueRefused::Marker);
        }
        Ok(Self(Finder::new(value)))
    }

    /// Returns whether bytes hold the value, as it is or as JSON text.
    pub fn is_in(&self, bytes: &[u8]) -> bool {
        self.0.is_in(bytes)
    }

    fn finder(&self) -> &Finder {
        &self.0
    }
}

impl fmt::Debug for SensitiveValue {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("SensitiveValue")
    }
}

/// How often bytes are gone through before all of them are replaced.
const ROUNDS: usize = 4;

/// Returns the bytes without the value. JSON stays JSON. If the value cannot be taken out of the bytes, the marker replaces all of
/// them.
pub fn redact_content(bytes: &[u8], value: &SensitiveValue) -> Vec<u8> {
    let json = str::from_utf8(bytes).ok().and_then(|text| redact_json(text, value));
    let redacted = json.map_or_else(|| redact_bytes(bytes, value), String::into_bytes);
    if value.is_in(&redacted) { MARKER.as_bytes().to_vec() } else { redacted }
}

fn redact_json(text: &str, value: &SensitiveValue) -> Option<String> {
    let reads = |text: &str| serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
    let mut redaction =
        TextRedaction { value, free: &|_| true, reads: &reads, kept: BTreeSet::new(), replacements: 0 };
    redaction.run(text).filter(|redacted| !value.is_in(redacted.as_bytes()))
}

fn redact_bytes(bytes: &[u8], value: &SensitiveValue) -> Vec<u8> {
    let mut current = bytes.to_vec();
    for _ in 0..ROUNDS {
        let ranges = value.finder().ranges(&current);
        if ranges.is_empty() {
            break;
        }
        let mut next = Vec::with_capacity(current.len());
        let mut at = 0;
        for range in ranges {
            next.extend_from_slice(&current[at..range.start]);
            next.extend_from_slice(MARKER.as_bytes());
            at = range.end;
        }
        next.extend_from_slice(&current[at..]);
        current = next;
    }
    current
}
