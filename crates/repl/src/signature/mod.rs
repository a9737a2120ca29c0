//! Signatures: the form of an answer, in a notation that models read and write easily.
//!
//! `{count :int, items [{id :int}], note :string?}` is an object with two required fields and an optional
//! one; `(query :string) -> {...}` adds parameters. The types are `:string`, `:int`, `:float`, `:bool`,
//! `:keyword`, `:map` (any object) and `:any`; `[type]` is a list, `{name type}` an object, and `?` after a
//! type means that the value may be missing or nil. A field whose name begins with `_` is *firewalled*: data
//! and answers contain it, and no prompt ever shows its value.
//!
//! A signature corresponds to a JSON Schema and converts in both directions; the text of a schema is accepted
//! as well. A schema that says more than types can (bounds, patterns, enumerations, choices, further fields)
//! is kept beside them: answers are checked against it as it is, and the types serve as a summary.

mod check;
mod parse;
mod schema;

use std::fmt;
use std::sync::Arc;

use serde_json::Value as Json;

pub use check::{Mismatch, mismatches};
pub use parse::InvalidSignature;

/// The form of an answer, with its parameters.
///
/// ```
/// use backstitch_repl::Signature;
///
/// let signature: Signature = "(query :string) -> {count :int, note :string?}".parse()?;
/// assert_eq!(signature.parameters[0].name, "query");
/// assert!("{count".parse::<Signature>().is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature {
    /// The parameters, in order.
    pub parameters: Vec<Field>,
    /// The type of the answer. With a schema, a summary of it.
    pub output: Type,
    /// The JSON Schema of the answer, if it says more than the type.
    pub schema: Option<Json>,
}

/// A check of answers against a JSON Schema. The library that compiles schemas is outside of this crate.
#[derive(Clone)]
pub struct AnswerCheck(Arc<FindProblems>);

/// Lists the problems of an answer, or returns `None` for a valid one.
type FindProblems = dyn Fn(&Json) -> Option<String> + Send + Sync;

impl AnswerCheck {
    /// Creates a check from a function that lists the problems of an answer, one on each line, or returns
    /// `None` for a valid one.
    pub fn new(problems: impl Fn(&Json) -> Option<String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(problems))
    }

    /// The problems of an answer.
    pub(crate) fn problems(&self, answer: &Json) -> Option<String> {
        (self.0)(answer)
    }
}

impl fmt::Debug for AnswerCheck {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("AnswerCheck")
    }
}

/// A field of an object, or a parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// The name.
    pub name: String,
    /// The type of the value.
    pub holds: Type,
}

/// Whether prompts must not show the value of a field of this name.
pub fn is_firewalled(name: &str) -> bool {
    name.starts_with('_')
}

/// The type of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Type {
    /// A text.
    String,
    /// An integer.
    Int,
    /// Any number.
    Float,
    /// True or false.
    Bool,
    /// A keyword; in JSON a text.
    Keyword,
    /// An object with any fields.
    Map,
    /// Anything.
    Any,
    /// A list of values of one type.
    List(Box<Type>),
    /// An object with these fields and no others.
    Object(Vec<Field>),
    /// A value that may be missing or nil.
    Optional(Box<Type>),
}

impl Type {
    /// Whether the value may be missing.
    pub fn is_optional(&self) -> bool {
        matches!(self, Self::Optional(_))
    }

    /// The type of the value if it is present.
    pub fn present(&self) -> &Type {
        match self {
            Self::Optional(inner) => inner.present(),
            other => other,
        }
    }

    /// The type in words: `an integer`, `a list of objects`.
    pub(crate) fn words(&self) -> String {
        match self {
            Self::List(items) => format!("a list, each item {}", items.words()),
            Self::Optional(inner) => format!("{} or nil", inner.words()),
            other => other.simple()[1].to_owned(),
        }
    }

    /// An example value of the type, in the notation of the language.
    pub fn example(&self) -> String {
        match self {
            Self::List(items) => format!("[{}]", items.example()),
            Self::Object(fields) => {
                let shown = |field: &Field| format!("{} {}", key(&field.name), field.holds.example());
                format!("{{{}}}", fields.iter().map(shown).collect::<Vec<_>>().join(", "))
            }
            Self::Optional(inner) => inner.example(),
            other => other.simple()[2].to_owned(),
        }
    }

    /// The name of a type without parts, the type in words, and an example.
    fn simple(&self) -> [&'static str; 3] {
        match self {
            Self::String => [":string", "a string", "\"text\""],
            Self::Int => [":int", "an integer", "42"],
            Self::Float => [":float", "a number", "4.2"],
            Self::Bool => [":bool", "true or false", "true"],
            Self::Keyword => [":keyword", "a keyword", ":word"],
            Self::Map | Self::Object(_) => [":map", "a map", "{:key \"value\"}"],
            Self::Any | Self::List(_) | Self::Optional(_) => [":any", "anything", "\"anything\""],
        }
    }
}

/// The name of a field as the key of a map in a program.
fn key(name: &str) -> String {
    if backstitch_lisp::is_keyword_name(name) { format!(":{name}") } else { format!("{name:?}") }
}

impl fmt::Display for Type {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::List(items) => write!(formatter, "[{items}]"),
            Self::Object(fields) => {
                formatter.write_str("{")?;
                write_fields(formatter, fields)?;
                formatter.write_str("}")
            }
            Self::Optional(inner) => write!(formatter, "{}?", inner.present()),
            other => formatter.write_str(other.simple()[0]),
        }
    }
}

fn write_fields(formatter: &mut fmt::Formatter<'_>, fields: &[Field]) -> fmt::Result {
    for (index, field) in fields.iter().enumerate() {
        let comma = if index == 0 { "" } else { ", " };
        let Field { name, holds } = field;
        let name = if parse::is_plain(name) { name.clone() } else { format!("{name:?}") };
        write!(formatter, "{comma}{name} {holds}")?;
    }
    Ok(())
}

impl fmt::Display for Signature {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.parameters.is_empty() {
            formatter.write_str("(")?;
            write_fields(formatter, &self.parameters)?;
            formatter.write_str(") -> ")?;
        }
        match &self.schema {
            Some(schema) => schema.fmt(formatter),
            None => self.output.fmt(formatter),
        }
    }
}

impl std::str::FromStr for Signature {
    type Err = InvalidSignature;

    fn from_str(text: &str) -> Result<Self, InvalidSignature> {
        parse::parse(text)
    }
}
