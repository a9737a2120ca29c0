//! Parses signatures.

use serde_json::Value as Json;

use super::{Field, Signature, Type};

/// The maximum nesting depth of types.
const DEEPEST: usize = 32;

/// The maximum length of a text in bytes.
const LONGEST: usize = 64 * 1024;

/// A text is not a signature.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a signature: {problem}, at character {at}; write for example {EXAMPLE}")]
pub struct InvalidSignature {
    /// The problem.
    pub problem: String,
    /// The position, in characters from 1.
    pub at: usize,
}

const EXAMPLE: &str = "`{count :int, items [{id :int, note :string?}]}` or `(query :string) -> [:string]`";

pub(super) fn parse(text: &str) -> Result<Signature, InvalidSignature> {
    let mut parser = Parser { text, at: 0 };
    if text.len() > LONGEST {
        return Err(parser.problem(format!("it is longer than {LONGEST} bytes")));
    }
    // Apart from the empty object, no signature is JSON as well.
    if let Ok(Json::Object(schema)) = serde_json::from_str(text)
        && !schema.is_empty()
    {
        return Ok(Signature::from_schema(&Json::Object(schema)));
    }
    parser.space();
    let mut parameters = Vec::new();
    if parser.take("(") {
        parameters = parser.fields(")", 0)?;
        parser.space();
        if !parser.take("->") {
            return Err(parser.problem("after the parameters comes `->`"));
        }
    } else {
        parser.take("->");
    }
    let output = parser.parse_type(0)?;
    parser.space();
    if parser.at < text.len() {
        return Err(parser.problem("something follows its end"));
    }
    Ok(Signature { parameters, output, schema: None })
}

/// Whether a field's name is written without quotes.
pub(super) fn is_plain(name: &str) -> bool {
    let is_part = |character: char| character.is_alphanumeric() || matches!(character, '_' | '-' | '.' | '!');
    !name.is_empty() && name.chars().all(is_part)
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl Parser<'_> {
    fn problem(&self, problem: impl Into<String>) -> InvalidSignature {
        let at = self.text.get(..self.at).map_or(0, |before| before.chars().count()) + 1;
        InvalidSignature { problem: problem.into(), at }
    }

    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn space(&mut self) {
        let rest = self.rest();
        let skipped =
            rest.trim_start_matches(|character: char| character.is_whitespace() || character == ',');
        self.at += rest.len() - skipped.len();
    }

    fn take(&mut self, word: &str) -> bool {
        let is_there = self.rest().starts_with(word);
        if is_there {
            self.at += word.len();
        }
        is_there
    }

    fn parse_type(&mut self, depth: usize) -> Result<Type, InvalidSignature> {
        if depth > DEEPEST {
            return Err(self.problem(format!("types are nested more than {DEEPEST} deep")));
        }
        self.space();
        let found = if self.take("[") {
            let items = self.parse_type(depth + 1)?;
            self.space();
            if !self.take("]") {
                return Err(self.problem("a list holds one type and ends with `]`"));
            }
            Type::List(Box::new(items))
        } else if self.take("{") {
            Type::Object(self.fields("}", depth + 1)?)
        } else if self.take(":") {
            self.parse_named()?
        } else {
            return Err(self.problem("a type is expected: `:int`, `[:int]` or `{name :int}`"));
        };
        Ok(if self.take("?") { Type::Optional(Box::new(found)) } else { found })
    }

    fn parse_named(&mut self) -> Result<Type, InvalidSignature> {
        let rest = self.rest();
        let length = rest.find(|character: char| !character.is_ascii_alphanumeric()).unwrap_or(rest.len());
        let word = &rest[..length];
        let found = match word {
            "string" | "str" => Type::String,
            "int" | "integer" => Type::Int,
            "float" | "number" | "double" => Type::Float,
            "bool" | "boolean" => Type::Bool,
            "keyword" => Type::Keyword,
            "map" => Type::Map,
            "any" => Type::Any,
            "" => return Err(self.problem("after a colon comes the name of a type: `name :int`")),
            _ => {
                let known = ":string, :int, :float, :bool, :keyword, :map and :any";
                return Err(self.problem(format!("there is no type `:{word}`; there are {known}")));
            }
        };
        self.at += length;
        Ok(found)
    }

    fn fields(&mut self, end: &str, depth: usize) -> Result<Vec<Field>, InvalidSignature> {
        let mut fields: Vec<Field> = Vec::new();
        loop {
            self.space();
            if self.take(end) {
                return Ok(fields);
            }
            let name = self.name(end)?;
            if fields.iter().any(|field| field.name == name) {
                return Err(self.problem(format!("there are two fields `{name}`")));
            }
            let holds = self.parse_type(depth)?;
            fields.push(Field { name, holds });
        }
    }

    fn name(&mut self, end: &str) -> Result<String, InvalidSignature> {
        if self.rest().starts_with('"') {
            let mut names = serde_json::Deserializer::from_str(self.rest()).into_iter::<String>();
            let found = names.next();
            let length = names.byte_offset();
            let Some(Ok(name)) = found else { return Err(self.problem("a name in quotes does not end")) };
            self.at += length;
            return Ok(name);
        }
        // Also accepts `{:count :int}`, the notation of programs.
        self.take(":");
        let rest = self.rest();
        let is_part = |character: char| is_plain(character.encode_utf8(&mut [0; 4]));
        let length = rest.find(|character: char| !is_part(character)).unwrap_or(rest.len());
        if length == 0 {
            return Err(self.problem(format!("a name or `{end}` is expected")));
        }
        let name = rest[..length].to_owned();
        self.at += length;
        Ok(name)
    }
}
