//! Writes JSON text.

use crate::effort;
use crate::error::{Error, ErrorKind, Result};
use crate::json::key_name;
use crate::limits::Limits;
use crate::printer::temporal_json;
use crate::value::integers::count_digits;
use crate::value::{Cursor, CursorStep, Value};

pub(super) struct JsonWriter<'a> {
    out: String,
    pretty: bool,
    limits: &'a Limits,
}

impl<'a> JsonWriter<'a> {
    pub(super) fn new(pretty: bool, limits: &'a Limits) -> Self {
        Self { out: String::new(), pretty, limits }
    }

    pub(super) fn finish(self) -> String {
        self.out
    }

    pub(super) fn value(&mut self, value: &Value, depth: usize) -> Result<()> {
        // Indentation costs as much as its depth.
        effort::check(effort::touch(effort::ITEM + if self.pretty { 2 * depth } else { 0 }))?;
        self.limits.check_string(self.out.len())?;
        match value {
            Value::Nil => self.out.push_str("null"),
            Value::Boolean(value) => self.out.push_str(if *value { "true" } else { "false" }),
            Value::Integer(value) => self.out.push_str(&value.to_string()),
            Value::BigInteger(value) if count_digits(value.bits()) => return Err(effort::given_up()),
            Value::BigInteger(value) => self.out.push_str(&value.to_string()),
            Value::Float(value) => self.double(*value)?,
            Value::Ratio(value) => self.double(value.to_f64())?,
            Value::String(text) => self.string(text),
            Value::Character(character) => self.string(&character.to_string()),
            Value::Keyword(name) => self.string(name.full()),
            Value::Symbol(name) => self.string(name.full()),
            Value::Temporal(temporal) => self.string(&temporal_json(temporal)),
            Value::Regex(pattern) => self.string(&pattern.source),
            Value::Map(map) => {
                self.out.push('{');
                for (at, (key, value)) in map.iter().enumerate() {
                    self.item(at, depth + 1);
                    let name = key_name(key)?;
                    self.string(&name);
                    self.out.push(':');
                    if self.pretty {
                        self.out.push(' ');
                    }
                    self.value(value, depth + 1)?;
                }
                self.close('}', map.is_empty(), depth);
            }
            Value::Vector(_) | Value::Set(_) | Value::List(_) | Value::Sequence(_) | Value::Lazy(_) => {
                self.out.push('[');
                let mut cursor = Cursor::new(value).unwrap_or(Cursor::End);
                let mut count = 0;
                while let CursorStep::Item(item) = cursor.next() {
                    self.item(count, depth + 1);
                    self.value(&item, depth + 1)?;
                    count += 1;
                }
                self.close(']', count == 0, depth);
            }
            other => {
                let message = format!("JSON cannot hold a value of type {}", other.type_name());
                return Err(Error::new(ErrorKind::NotRepresentable, message));
            }
        }
        Ok(())
    }

    fn item(&mut self, at: usize, depth: usize) {
        if at > 0 {
            self.out.push(',');
        }
        self.line(depth);
    }

    fn line(&mut self, depth: usize) {
        if self.pretty {
            self.out.push('\n');
            self.out.extend(std::iter::repeat_n("  ", depth));
        }
    }

    fn close(&mut self, close: char, empty: bool, depth: usize) {
        if !empty {
            self.line(depth);
        }
        self.out.push(close);
    }

    fn double(&mut self, value: f64) -> Result<()> {
        let text = crate::printer::double_text(value);
        if !value.is_finite() {
            return Err(Error::new(ErrorKind::NotRepresentable, format!("JSON cannot hold {text}")));
        }
        self.out.push_str(&text);
        Ok(())
    }

    fn string(&mut self, text: &str) {
        effort::touch_bytes(4 * text.len());
        self.out.push_str(&serde_json::to_string(text).unwrap_or_default());
    }
}
