//! Keywords that were looked up in maps without them, for the hint of an error about nil.
//!
//! A misspelt key is not an error where it is looked up: the nil that it gives fails later and elsewhere. So
//! each fiber remembers the keys that differ little from one that the map has. This costs nothing that a
//! program could measure: only the first few keywords are compared, each once.

use crate::error::{Error, ErrorKind, did_you_mean};
use crate::value::{Keyword, Map, Value};

/// The most keywords that are compared with the keys of a map.
const MOST_KEYWORDS: usize = 16;

/// The most keys of a map that a keyword is compared with.
const MOST_KEYS: usize = 64;

/// What a fiber knows about keys that it did not find.
#[derive(Default)]
pub(crate) struct MissedKeys {
    compared: Vec<Keyword>,
    hint: Option<String>,
}

impl MissedKeys {
    /// Notes that a map does not have a key.
    #[inline]
    pub(crate) fn note(&mut self, map: &Map, key: &Value) {
        if self.hint.is_none() && self.compared.len() < MOST_KEYWORDS {
            self.compare(map, key);
        }
    }

    /// Notes the result of a lookup in a value.
    #[inline]
    pub(crate) fn note_lookup(&mut self, collection: &Value, key: &Value, found: Option<&Value>) {
        if let (None, Value::Map(map)) = (found, collection) {
            self.note(map, key);
        }
    }

    #[cold]
    fn compare(&mut self, map: &Map, key: &Value) {
        let Value::Keyword(name) = key else { return };
        if map.is_empty() || map.len() > MOST_KEYS || self.compared.contains(name) {
            return;
        }
        self.compared.push(name.clone());
        let known = map.keys().filter_map(|key| match key {
            Value::Keyword(name) => Some(name.full()),
            _ => None,
        });
        let near = did_you_mean(name.full(), known).map(|near| near.replace(" `", " `:"));
        self.hint = near.map(|near| format!("the map has no `:{}`; {near}", name.full()));
    }

    /// Adds the hint to an error that ends a program and that is about nil.
    pub(super) fn explain(&self, error: Error) -> Error {
        let about_nil = matches!(error.kind(), ErrorKind::Type | ErrorKind::NotCallable)
            && error.message().split([' ', ',']).any(|word| word == "nil");
        match &self.hint {
            Some(hint) if about_nil => error.hint(hint.clone()),
            _ => error,
        }
    }
}
