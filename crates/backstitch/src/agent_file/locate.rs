//! Finds the offset of a key in a TOML text, and the key at an offset.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Returns the number of the line at an offset, from 1.
pub(super) fn line(text: &str, at: usize) -> usize {
    text.as_bytes()[..at.min(text.len())].iter().filter(|byte| **byte == b'\n').count() + 1
}

/// Returns the offset of a key, or of its longest existing prefix. The offset is that of the name, or of the
/// item if the path ends in an array: a value that is a table has no offset of its own.
pub(super) fn place_of(table: &DeTable<'_>, key: &[String]) -> Option<usize> {
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
pub(super) fn key_at(table: &DeTable<'_>, at: &Range<usize>) -> Option<Vec<String>> {
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
