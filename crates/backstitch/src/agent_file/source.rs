//! TOML texts whose errors name the file, the line and the key.

use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::{AgentFileError, Problem, SourceLocation, near};

/// A TOML text, and the file that it comes from.
pub struct TomlSource<'a> {
    /// The file; `None` for a text that is not in a file.
    pub file: Option<&'a Path>,
    /// The text.
    pub text: &'a str,
}

impl TomlSource<'_> {
    /// Parses the text. An error names the line and the key, and suggests a known name for an unknown one.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, AgentFileError> {
        toml::from_str(self.text).map_err(|error| {
            let at = error.span().unwrap_or_default();
            let key = self.table().and_then(|table| key_at(table.get_ref(), &at));
            let message = with_hint(error.message());
            let problem = Problem { key: key.unwrap_or_default(), message };
            AgentFileError::InFile { place: self.place(&at), problem }
        })
    }

    /// Adds the line of the key to an error.
    pub fn located(&self, error: AgentFileError) -> AgentFileError {
        let AgentFileError::InDefinition(problem) = error else { return error };
        let at = self.table().and_then(|table| place_of(table.get_ref(), &problem.key));
        let at = at.unwrap_or_default();
        AgentFileError::InFile { place: self.place(&(at..at)), problem }
    }

    /// Returns the line of a key, or of its longest existing prefix.
    pub fn line_of(&self, key: &[String]) -> Option<usize> {
        let at = self.table().and_then(|table| place_of(table.get_ref(), key))?;
        Some(line(self.text, at))
    }

    fn table(&self) -> Option<Spanned<DeTable<'_>>> {
        DeTable::parse(self.text).ok()
    }

    fn place(&self, at: &Range<usize>) -> SourceLocation {
        SourceLocation { file: self.file.map(PathBuf::from), line: line(self.text, at.start) }
    }
}

/// Adds a suggestion to a message about an unknown name. The message holds the names between backquotes, the
/// unknown one first.
fn with_hint(message: &str) -> String {
    let names: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    match names.split_first() {
        Some((unknown, known)) if message.starts_with("unknown ") => {
            format!("{message}{}", near(unknown, known))
        }
        _ => message.to_owned(),
    }
}

/// Returns the number of the line at an offset, from 1.
fn line(text: &str, at: usize) -> usize {
    text.as_bytes()[..at.min(text.len())].iter().filter(|byte| **byte == b'\n').count() + 1
}

/// Returns the offset of a key, or of its longest existing prefix. The offset is that of the name, or of the
/// item if the path ends in an array: a value that is a table has no offset of its own.
fn place_of(table: &DeTable<'_>, key: &[String]) -> Option<usize> {
    let (first, rest) = key.split_first()?;
    let (name, value) = table.iter().find(|(name, _)| name.get_ref() == first)?;
    Some(inside(value, rest).unwrap_or(name.span().start))
}

fn inside(value: &Spanned<DeValue<'_>>, key: &[String]) -> Option<usize> {
    let (first, rest) = key.split_first()?;
    match value.get_ref() {
        DeValue::Table(table) => place_of(table, key),
        DeValue::Array(items) => {
            let item = items.get(first.parse::<usize>().ok()?)?;
            Some(inside(item, rest).unwrap_or(item.span().start))
        }
        _ => None,
    }
}

/// Returns the path of the key whose name or value is at an offset.
fn key_at(table: &DeTable<'_>, at: &Range<usize>) -> Option<Vec<String>> {
    for (name, value) in table.iter() {
        let found = if holds(&name.span(), at) { Some(Vec::new()) } else { key_in(value, at) };
        if let Some(mut key) = found {
            key.insert(0, name.get_ref().to_string());
            return Some(key);
        }
    }
    None
}

fn key_in(value: &Spanned<DeValue<'_>>, at: &Range<usize>) -> Option<Vec<String>> {
    let deeper = match value.get_ref() {
        DeValue::Table(table) => key_at(table, at),
        DeValue::Array(items) => items.iter().enumerate().find_map(|(index, item)| {
            let mut key = key_in(item, at)?;
            key.insert(0, index.to_string());
            Some(key)
        }),
        _ => None,
    };
    deeper.or_else(|| holds(&value.span(), at).then(Vec::new))
}

fn holds(span: &Range<usize>, at: &Range<usize>) -> bool {
    span.start <= at.start && at.start < span.end.max(span.start + 1)
}
