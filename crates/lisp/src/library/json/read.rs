//! Reads JSON text.
//!
//! Written by hand because integers beyond 64 bits must stay exact, and because the limits of the language
//! apply while reading.

use num_bigint::BigInt;

use crate::effort;
use crate::error::{Error, ErrorKind, Result};
use crate::json::{KeyMaker, Keys};
use crate::limits::Limits;
use crate::reader::{simple_escape, unicode_escape};
use crate::value::integers::count_reading;
use crate::value::{Map, Value, number};

/// The deepest nesting, whatever the limits: the reader recurses.
const DEEPEST: u32 = 500;

pub(super) struct JsonReader<'a> {
    text: &'a str,
    at: usize,
    keys: KeyMaker,
    limits: &'a Limits,
}

impl<'a> JsonReader<'a> {
    pub(super) fn new(text: &'a str, keys: Keys, limits: &'a Limits) -> Self {
        Self { text, at: 0, keys: KeyMaker::new(keys), limits }
    }

    /// Reads a text that holds exactly one value.
    pub(super) fn document(mut self) -> Result<Value> {
        let value = self.value(1)?;
        self.skip_blanks();
        if self.at < self.text.len() { Err(self.error("something follows the value")) } else { Ok(value) }
    }

    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_blanks(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.byte() {
            self.at += 1;
        }
    }

    fn error(&self, reason: &str) -> Error {
        let place = self.text[..self.at].chars().count() + 1;
        Error::new(ErrorKind::InvalidText, format!("not JSON: {reason} (at character {place})"))
    }

    fn value(&mut self, depth: u32) -> Result<Value> {
        self.limits.check_depth(depth - 1)?;
        if depth > DEEPEST {
            let message = format!("JSON is nested more than {DEEPEST} deep");
            return Err(Error::new(ErrorKind::NestingExceeded, message));
        }
        self.skip_blanks();
        match self.byte() {
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b'"') => self.string().map(Value::from),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word("true", Value::Boolean(true)),
            Some(b'f') => self.word("false", Value::Boolean(false)),
            Some(b'n') => self.word("null", Value::Nil),
            Some(_) => Err(self.error("a value cannot begin like this")),
            None => Err(self.error("the text ends where a value is expected")),
        }
    }

    fn word(&mut self, word: &str, value: Value) -> Result<Value> {
        if !self.text[self.at..].starts_with(word) {
            return Err(self.error("an unknown word"));
        }
        self.at += word.len();
        Ok(value)
    }

    /// Consumes the comma or the closing bracket after an item. Returns whether the collection continues.
    fn skip_separator(&mut self, close: u8) -> Result<bool> {
        self.skip_blanks();
        match self.byte() {
            Some(b',') => {
                self.at += 1;
                Ok(true)
            }
            Some(byte) if byte == close => {
                self.at += 1;
                Ok(false)
            }
            Some(_) => Err(self.error("a comma or a closing bracket is missing")),
            None => Err(self.error("the text ends inside of a collection")),
        }
    }

    fn consume_if_empty(&mut self, close: u8) -> bool {
        self.at += 1;
        self.skip_blanks();
        let empty = self.byte() == Some(close);
        self.at += usize::from(empty);
        empty
    }

    fn array(&mut self, depth: u32) -> Result<Value> {
        let mut items = Vec::new();
        if !self.consume_if_empty(b']') {
            loop {
                items.push(self.value(depth + 1)?);
                self.limits.check_collection(items.len())?;
                if !self.skip_separator(b']')? {
                    break;
                }
            }
        }
        Ok(Value::vector(items))
    }

    fn object(&mut self, depth: u32) -> Result<Value> {
        let mut map = Map::new();
        if !self.consume_if_empty(b'}') {
            loop {
                self.skip_blanks();
                if self.byte() != Some(b'"') {
                    return Err(self.error("a key is a string"));
                }
                let key = self.string()?;
                self.skip_blanks();
                if self.byte() != Some(b':') {
                    return Err(self.error("a colon is missing behind a key"));
                }
                self.at += 1;
                let value = self.value(depth + 1)?;
                map.insert(self.keys.key(&key), value);
                self.limits.check_collection(map.len())?;
                if !self.skip_separator(b'}')? {
                    break;
                }
            }
        }
        Ok(Value::Map(map.flexible()))
    }

    fn number(&mut self) -> Result<Value> {
        let start = self.at;
        while let Some(b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E') = self.byte() {
            self.at += 1;
        }
        let token = &self.text[start..self.at];
        let digits = token.strip_prefix('-').unwrap_or(token);
        let leading_zero =
            digits.len() > 1 && digits.starts_with('0') && digits.as_bytes()[1].is_ascii_digit();
        if !digits.starts_with(|first: char| first.is_ascii_digit()) || leading_zero {
            return Err(self.error("a number is not written like this"));
        }
        if digits.bytes().all(|byte| byte.is_ascii_digit()) {
            if let Ok(small) = token.parse() {
                return Ok(Value::Integer(small));
            }
            // A decimal digit holds more than three bits.
            self.limits.check_number(token.len() as u64 * 3)?;
            effort::check(count_reading(token.len()))?;
            return token
                .parse::<BigInt>()
                .map(number::big)
                .map_err(|_| self.error("a number is not written like this"));
        }
        match token.parse::<f64>() {
            Ok(value) if value.is_finite() && !digits.ends_with('.') && !digits.contains(".e") => {
                Ok(Value::Float(value))
            }
            _ => Err(self.error("a number is not written like this")),
        }
    }

    fn string(&mut self) -> Result<String> {
        self.at += 1;
        let mut text = String::new();
        loop {
            let rest = &self.text[self.at..];
            let Some(end) = rest.bytes().position(|byte| matches!(byte, b'"' | b'\\' | 0..0x20)) else {
                return Err(self.error("the text ends inside of a string"));
            };
            text.push_str(&rest[..end]);
            self.limits.check_string(text.len())?;
            self.at += end;
            match self.byte() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(text);
                }
                Some(b'\\') => {
                    let character = self.escape()?;
                    text.push(character);
                }
                _ => return Err(self.error("a control character in a string is not escaped")),
            }
        }
    }

    fn escape(&mut self) -> Result<char> {
        let escape = &self.text[self.at + 1..];
        let (character, length) = match escape.bytes().next() {
            Some(b'u') => match unicode_escape(escape) {
                // Half of a surrogate pair cannot be stored; as in other readers, it becomes the replacement
                // character.
                Some((character, length)) => (character.unwrap_or(char::REPLACEMENT_CHARACTER), length),
                None => return Err(self.error("an escape needs four hexadecimal digits")),
            },
            Some(b'/') => ('/', 1),
            kind => match kind.and_then(simple_escape) {
                Some(character) => (character, 1),
                None => return Err(self.error("an unknown escape")),
            },
        };
        self.at += 1 + length;
        Ok(character)
    }
}
