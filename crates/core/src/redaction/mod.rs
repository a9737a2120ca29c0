//! Redaction: replaces a value in stored records and contents.
//!
//! A value that must not be stored any more (a leaked key, a name) is replaced by [`MARKER`]. It is found as it is and as JSON text,
//! also where JSON is nested in strings of JSON, and a record whose text was replaced still decodes. What gives a record its
//! structure never changes: field names, ids, times, numbers outside of free-form data, and the names of tools, slices, resources,
//! prompts, policies, providers and models. Where the value is a part of those, it stays and is counted.
//!
//! Nothing here does IO: stores decide which records and objects a redaction concerns (see [`Store::redact`](crate::ports::Store::redact)).

mod content;
mod document;
mod fields;
mod record;
mod search;

use std::fmt;

pub use content::redact_content;
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
