//! Texts with fields: `$field`, `${field}`, and `$$` for a literal `$`.
//!
//! A template is parsed once, when its prompt is built. The values of fields are not parsed, so a parameter
//! cannot refer to others.

use serde_json::{Map, Value};

use super::TemplateError;

/// A text with fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Template {
    source: String,
    pieces: Vec<Piece>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    Field(String),
}

impl Template {
    pub(super) fn parse(source: &str) -> Result<Self, TemplateError> {
        let mut pieces = Vec::new();
        let mut text = String::new();
        let mut rest = source;
        while let Some(at) = rest.find('$') {
            text.push_str(&rest[..at]);
            let after = &rest[at + 1..];
            if let Some(more) = after.strip_prefix('$') {
                text.push('$');
                rest = more;
                continue;
            }
            let Some((field, more)) = field(after) else {
                let before = source.len() - rest.len() + at;
                return Err(TemplateError { line: source[..before].matches('\n').count() + 1 });
            };
            if !text.is_empty() {
                pieces.push(Piece::Text(std::mem::take(&mut text)));
            }
            pieces.push(Piece::Field(field.to_owned()));
            rest = more;
        }
        text.push_str(rest);
        if !text.is_empty() {
            pieces.push(Piece::Text(text));
        }
        Ok(Self { source: source.to_owned(), pieces })
    }

    /// The source of the template.
    pub(super) fn source(&self) -> &str {
        &self.source
    }

    pub(super) fn fields(&self) -> impl Iterator<Item = &str> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Field(field) => Some(field.as_str()),
            Piece::Text(_) => None,
        })
    }

    /// Returns the text with values in place of its fields. A field without a value is omitted; binding a
    /// prompt ensures that all fields have values.
    pub(super) fn fill(&self, values: &Map<String, Value>) -> String {
        let mut filled = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => filled.push_str(text),
                Piece::Field(field) => {
                    if let Some(value) = values.get(field) {
                        push_value(&mut filled, value);
                    }
                }
            }
        }
        filled
    }
}

/// Splits a text into the field name at its start and the rest.
fn field(text: &str) -> Option<(&str, &str)> {
    let (braced, text) = match text.strip_prefix('{') {
        Some(text) => (true, text),
        None => (false, text),
    };
    let named = |character: char| character.is_ascii_alphanumeric() || character == '_';
    let end = text.find(|character| !named(character)).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    if name.is_empty() || name.as_bytes()[0].is_ascii_digit() {
        return None;
    }
    if braced { rest.strip_prefix('}').map(|rest| (name, rest)) } else { Some((name, rest)) }
}

/// Appends a text unchanged, nothing for null, and any other value as JSON.
fn push_value(text: &mut String, value: &Value) {
    match value {
        Value::Null => {}
        Value::String(value) => text.push_str(value),
        other => text.push_str(&other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn filled(source: &str, values: Value) -> String {
        Template::parse(source).unwrap().fill(values.as_object().unwrap())
    }

    #[test]
    fn fields_are_put_in_and_signs_stay() {
        let values = json!({"who": "Ada", "n": 3, "list": [1, "$who"], "none": null, "yes": true});
        assert_eq!(filled("$who, ${who}s: $n$$ $list.$none$yes", values), "Ada, Adas: 3$ [1,\"$who\"].true");
        assert_eq!(filled("$$who $$$$", json!({})), "$who $$");
        assert_eq!(filled("$who", json!({"who": "$who $$ $other"})), "$who $$ $other", "values are not read");
    }

    #[test]
    fn a_lone_sign_is_refused_with_its_line() {
        for source in ["costs $5", "a $", "${who", "${}", "$ who", "$é"] {
            assert_eq!(Template::parse(source), Err(TemplateError { line: 1 }), "{source}");
        }
        assert_eq!(Template::parse("a\n$b\n\n$-").unwrap_err().line, 4);
    }

    #[test]
    fn the_fields_are_known_before_values_are() {
        let template = Template::parse("$a and ${b} and $a").unwrap();
        assert_eq!(template.fields().collect::<Vec<_>>(), ["a", "b", "a"]);
        assert_eq!(template.source(), "$a and ${b} and $a");
    }
}
