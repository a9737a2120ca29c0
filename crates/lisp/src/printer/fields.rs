//! The names of the fields of records, for readers who have to write a program about them.
//!
//! A sample shows the first entries of the first records. The names of all fields follow from a look at the
//! first records: `list[4] of {:customer :id :status :total}`. Nested records are shown in their place:
//! `map[2] with {:matches [{:line :path}] :more}`. Hidden names, which begin with `_`, are left out. The cost
//! is bounded, whatever the size of the value.

use super::full::Style;
use super::sample::is_hidden;
use super::scalar::{escape_string, print_scalar};
use crate::reader::is_keyword_name;
use crate::types::type_label;
use crate::value::{Cursor, CursorStep, Map, Value};

/// The records of a list that are looked at.
const RECORDS: usize = 20;
/// The fields of a record that are named.
const FIELDS: usize = 32;
/// The depth of records in records.
const DEPTH: usize = 3;
/// From this many bytes on, no more fields are named.
const ENOUGH: usize = 600;
/// A longer name is data rather than a field.
const LONGEST: usize = 60;

/// Returns the type label of a value, and the names of its fields if it is a list of records, or a record of
/// which a sample of `items` items does not show all names.
pub fn label_with_fields(value: &Value, items: usize) -> String {
    let mut label = type_label(value);
    let records = records_of(value);
    if !records.is_empty() {
        let mut names = String::new();
        write_records(&records, &mut names, 0);
        match value {
            Value::Map(map) if map.len() <= items && names.matches('{').count() == 1 => {}
            Value::Map(_) => label.push_str(&format!(" with {names}")),
            _ => label.push_str(&format!(" of {names}")),
        }
        return label;
    }
    // A list of lists of records.
    if let Some(nested) = first_nested(value) {
        label.push_str(" of [");
        write_records(&nested, &mut label, 1);
        label.push(']');
    }
    label
}

/// The record itself, or the records among the first items of a list.
fn records_of(value: &Value) -> Vec<Map> {
    let is_record = |map: &Map| map.keys().take(FIELDS).any(|key| !is_hidden(key));
    match value {
        Value::Map(map) if is_record(map) => vec![map.clone()],
        _ => items(value)
            .into_iter()
            .filter_map(|item| match item {
                Value::Map(map) if is_record(&map) => Some(map),
                _ => None,
            })
            .collect(),
    }
}

fn first_nested(value: &Value) -> Option<Vec<Map>> {
    let lists = items(value).into_iter().filter(|item| !matches!(item, Value::Map(_)));
    lists.map(|item| records_of(&item)).find(|records| !records.is_empty())
}

/// The first items of a list or a set, as far as they are realised.
fn items(value: &Value) -> Vec<Value> {
    match value {
        Value::Set(set) => set.iter().take(RECORDS).cloned().collect(),
        Value::Vector(_) | Value::List(_) | Value::Sequence(_) | Value::Lazy(_) => {
            let mut cursor = Cursor::new(value).unwrap_or(Cursor::End);
            let mut items = Vec::new();
            while items.len() < RECORDS {
                match cursor.next() {
                    CursorStep::Item(item) => items.push(item),
                    _ => break,
                }
            }
            items
        }
        _ => Vec::new(),
    }
}

/// Writes the names of the fields of records that are alike: every name once, in the order of keys.
fn write_records(records: &[Map], out: &mut String, depth: usize) {
    let keys = records.iter().flat_map(|record| record.keys().take(2 * FIELDS));
    let mut keys: Vec<&Value> = keys.filter(|key| !is_hidden(key)).collect();
    keys.sort_unstable();
    keys.dedup();
    out.push('{');
    for (at, key) in keys.iter().enumerate() {
        if at > 0 {
            out.push(' ');
        }
        if at >= FIELDS || out.len() >= ENOUGH {
            out.push_str("...");
            break;
        }
        write_key(key, out);
        if depth + 1 >= DEPTH {
            continue;
        }
        for value in records.iter().filter_map(|record| record.get(key)) {
            let nested = records_of(value);
            if nested.is_empty() {
                continue;
            }
            let is_map = matches!(value, Value::Map(_));
            out.push_str(if is_map { " " } else { " [" });
            write_records(&nested, out, depth + 1);
            if !is_map {
                out.push(']');
            }
            break;
        }
    }
    out.push('}');
}

fn write_key(key: &Value, out: &mut String) {
    let start = out.len();
    match key {
        Value::String(text) => escape_string(text, out),
        // Fields that come from JSON are found under the string as well.
        Value::Keyword(name) if !is_keyword_name(name.full()) => escape_string(name.full(), out),
        other => {
            if !print_scalar(other, Style::Readable, out) {
                out.push_str("...");
            }
        }
    }
    if let Some((end, _)) = out[start..].char_indices().nth(LONGEST) {
        out.truncate(start + end);
        out.push_str("...");
    }
}
