//! Checks whether an answer fits its signature, with errors that a model can act on.

use std::fmt;

use serde_json::Value as Json;

use super::{Field, Type, is_firewalled, key};
use crate::text::cut;

/// The maximum number of reported mismatches.
const MOST: usize = 20;

/// The maximum number of characters of a value.
const SHOWN: usize = 40;

/// The expectation at a field that the signature does not have.
const NO_SUCH_FIELD: &str = "no such field";

/// A place where an answer does not fit its signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mismatch {
    /// The path, in the notation of `get-in`: `[:items 0 :id]`.
    pub path: String,
    /// The expected value, in words.
    pub expected: String,
    /// The actual value, in words.
    pub got: String,
    /// How to correct it.
    pub advice: String,
}

impl Mismatch {
    /// Whether the place is a field that the signature does not have.
    pub(crate) fn is_extra(&self) -> bool {
        self.expected == NO_SUCH_FIELD
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: expected {}, got {}; {}", self.path, self.expected, self.got, self.advice)
    }
}

/// Returns the first mismatches between a value and a type.
pub fn mismatches(value: &Json, wanted: &Type) -> Vec<Mismatch> {
    let mut checker = Checker { path: Vec::new(), found: Vec::new() };
    checker.check(value, wanted);
    checker.found
}

struct Checker {
    path: Vec<String>,
    found: Vec<Mismatch>,
}

impl Checker {
    fn check(&mut self, value: &Json, wanted: &Type) {
        if self.found.len() >= MOST {
            return;
        }
        let fits = match (wanted, value) {
            (Type::Optional(_), Json::Null) | (Type::Any, _) => true,
            (Type::Optional(inner), value) => return self.check(value, inner),
            (Type::String | Type::Keyword, Json::String(_)) => true,
            (Type::Int, Json::Number(number)) => number.is_i64() || number.is_u64(),
            (Type::Float, Json::Number(_)) | (Type::Bool, Json::Bool(_)) | (Type::Map, Json::Object(_)) => {
                true
            }
            (Type::List(items), Json::Array(values)) => {
                for (index, value) in values.iter().enumerate() {
                    self.at(index.to_string(), |checker| checker.check(value, items));
                }
                true
            }
            (Type::Object(fields), Json::Object(values)) => {
                self.fields(values, fields);
                true
            }
            _ => false,
        };
        if !fits {
            let advice = advice(value, wanted);
            self.add(wanted.words(), self.shown(value), advice);
        }
    }

    fn fields(&mut self, values: &serde_json::Map<String, Json>, fields: &[Field]) {
        for field in fields {
            let name = key(&field.name);
            match values.get(&field.name) {
                Some(value) => self.at(name, |checker| checker.check(value, &field.holds)),
                None if field.holds.is_optional() => {}
                None => {
                    let advice = format!("add it, for example `{name} {}`", field.holds.example());
                    self.at(name, |checker| checker.add(field.holds.words(), "nothing".to_owned(), advice));
                }
            }
        }
        let known = |name: &String| fields.iter().any(|field| field.name == *name);
        for (name, value) in values.iter().filter(|(name, _)| !known(name)) {
            let names: Vec<String> = fields.iter().map(|field| key(&field.name)).collect();
            let advice = format!("leave it out or spell it as one of {}", names.join(", "));
            self.at(key(name), |checker| checker.add(NO_SUCH_FIELD.to_owned(), checker.shown(value), advice));
        }
    }

    fn at(&mut self, step: String, check: impl FnOnce(&mut Self)) {
        self.path.push(step);
        check(self);
        self.path.pop();
    }

    fn add(&mut self, expected: String, got: String, advice: String) {
        if self.found.len() < MOST {
            self.found.push(Mismatch { path: format!("[{}]", self.path.join(" ")), expected, got, advice });
        }
    }

    /// A short description of a value, or only its type where no prompt may show the value.
    fn shown(&self, value: &Json) -> String {
        let is_hidden = |step: &String| is_firewalled(step.trim_start_matches([':', '"']));
        match value {
            Json::Null | Json::Array(_) => shown(value),
            _ if !self.path.iter().any(is_hidden) => shown(value),
            Json::Bool(_) => "a boolean".to_owned(),
            Json::Number(_) => "a number".to_owned(),
            Json::String(_) => "a string".to_owned(),
            Json::Object(_) => "a map".to_owned(),
        }
    }
}

fn advice(value: &Json, wanted: &Type) -> String {
    match (wanted.present(), value) {
        (Type::Int, Json::String(_)) => "read it with `parse-long`".to_owned(),
        (Type::Int, Json::Number(_)) => "make it an integer with `long` or `Math/round`".to_owned(),
        (Type::Float, Json::String(_)) => "read it with `parse-double`".to_owned(),
        (Type::String | Type::Keyword, Json::Number(_) | Json::Bool(_)) => {
            "make it a string with `str`".to_owned()
        }
        (Type::List(_), _) => format!("put it into a vector: `{}`", wanted.example()),
        _ => format!("write for example `{}`", wanted.example()),
    }
}

/// A short description of a value.
fn shown(value: &Json) -> String {
    match value {
        Json::Null => "nil".to_owned(),
        Json::Bool(value) => value.to_string(),
        Json::Number(number) => format!("the number {number}"),
        Json::String(text) => format!("the string {:?}", cut(text, SHOWN)),
        Json::Array(items) if items.is_empty() => "an empty list".to_owned(),
        Json::Array(items) if items.len() == 1 => "a list of 1 item".to_owned(),
        Json::Array(items) => format!("a list of {} items", items.len()),
        Json::Object(fields) if fields.is_empty() => "an empty map".to_owned(),
        Json::Object(fields) => {
            let names: Vec<String> = fields.keys().map(|name| key(name)).collect();
            let plural = if names.len() == 1 { "" } else { "s" };
            format!("a map with the key{plural} {}", cut(&names.join(" "), SHOWN))
        }
    }
}
