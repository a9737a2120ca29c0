//! Signatures: what an answer looks like, in a notation that a model reads and writes with ease.
//!
//! `{count :int, items [{id :int}], note :string?}` is an object with two fields that have to be there and one that need not;
//! `(query :string) -> {...}` names parameters before it. The types are `:string`, `:int`, `:float`, `:bool`, `:keyword`,
//! `:map` (any object) and `:any`, `[type]` is a list, `{name type}` an object, and `?` after a type says that the value may
//! be missing or nil. A field whose name begins with `_` is *firewalled*: it is kept in data and answers, and no prompt ever
//! shows what it holds.
//!
//! A signature has the same meaning as a JSON Schema and goes both ways; the text of a schema is read as well. A schema that says more than a signature can
//! (bounds, patterns, enumerations) is read as far as it goes.

mod check;
mod parse;
mod schema;

use std::fmt;

pub use check::{Mismatch, mismatches};
pub use parse::InvalidSignature;

/// What an answer looks like, and what it is made from.
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
    /// What has to be given.
    pub parameters: Vec<Field>,
    /// What is answered.
    pub output: Type,
}

/// A field of an object, or a parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// What it holds.
    pub holds: Type,
}

impl Field {
    /// Whether no prompt may show what the field holds.
    pub fn is_firewalled(&self) -> bool {
        is_firewalled(&self.name)
    }
}

/// Whether no prompt may show what something of this name holds.
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

    /// The type of the value where there is one.
    pub fn present(&self) -> &Type {
        match self {
            Self::Optional(inner) => inner.present(),
            other => other,
        }
    }

    /// The type in words: `an integer`, `a list of objects`.
    pub(crate) fn words(&self) -> String {
        match self {
            Self::String => "a string".to_owned(),
            Self::Int => "an integer".to_owned(),
            Self::Float => "a number".to_owned(),
            Self::Bool => "true or false".to_owned(),
            Self::Keyword => "a keyword".to_owned(),
            Self::Map | Self::Object(_) => "a map".to_owned(),
            Self::Any => "anything".to_owned(),
            Self::List(items) => format!("a list, each item {}", items.words()),
            Self::Optional(inner) => format!("{} or nil", inner.words()),
        }
    }

    /// A value of the type, as a program writes it.
    pub fn example(&self) -> String {
        match self {
            Self::String => "\"text\"".to_owned(),
            Self::Int => "42".to_owned(),
            Self::Float => "4.2".to_owned(),
            Self::Bool => "true".to_owned(),
            Self::Keyword => ":word".to_owned(),
            Self::Map => "{:key \"value\"}".to_owned(),
            Self::Any => "\"anything\"".to_owned(),
            Self::List(items) => format!("[{}]", items.example()),
            Self::Object(fields) => {
                let fields: Vec<String> = fields
                    .iter()
                    .map(|field| format!("{} {}", key(&field.name), field.holds.example()))
                    .collect();
                format!("{{{}}}", fields.join(", "))
            }
            Self::Optional(inner) => inner.example(),
        }
    }
}

/// A field's name as the key of a map in a program.
fn key(name: &str) -> String {
    match backstitch_lisp::is_keyword_name(name) {
        true => format!(":{name}"),
        false => format!("{name:?}"),
    }
}

impl fmt::Display for Type {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match self {
            Self::String => ":string",
            Self::Int => ":int",
            Self::Float => ":float",
            Self::Bool => ":bool",
            Self::Keyword => ":keyword",
            Self::Map => ":map",
            Self::Any => ":any",
            Self::List(items) => return write!(formatter, "[{items}]"),
            Self::Object(fields) => {
                formatter.write_str("{")?;
                write_fields(formatter, fields)?;
                return formatter.write_str("}");
            }
            Self::Optional(inner) => return write!(formatter, "{}?", inner.present()),
        };
        formatter.write_str(word)
    }
}

fn write_fields(formatter: &mut fmt::Formatter<'_>, fields: &[Field]) -> fmt::Result {
    for (index, field) in fields.iter().enumerate() {
        let comma = if index == 0 { "" } else { ", " };
        match parse::is_plain(&field.name) {
            true => write!(formatter, "{comma}{} {}", field.name, field.holds)?,
            false => write!(formatter, "{comma}{:?} {}", field.name, field.holds)?,
        }
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
        self.output.fmt(formatter)
    }
}

impl std::str::FromStr for Signature {
    type Err = InvalidSignature;

    fn from_str(text: &str) -> Result<Self, InvalidSignature> {
        parse::parse(text)
    }
}
