//! Writes values to a table.

use std::collections::HashMap;

use serde_json::{Value as Json, json};

use super::cells::scalar_cell;
use super::functions::function_node;
use crate::error::{Error, ErrorKind, Result};
use crate::value::{Closure, Cursor, CursorStep, Exception, Value};

/// Values nested deeper than this are refused before a walk.
const DEEPEST: u32 = 1_000;

/// Collects the compound values of a document.
pub(super) struct Writer {
    nodes: Vec<Json>,
    /// The index of a compound value in the table, by its kind and address.
    known: HashMap<(bool, u64), usize>,
    cells: usize,
    most_cells: usize,
    /// The version of the format that the document needs.
    version: u64,
    /// Keeps values alive whose addresses are keys of `known`, so that no address is reused.
    kept: Vec<Value>,
}

impl Writer {
    /// Creates a writer for at most `most_cells` cells.
    pub(super) fn new(most_cells: usize) -> Self {
        let (nodes, known, kept) = (Vec::new(), HashMap::new(), Vec::new());
        Self { nodes, known, cells: 0, most_cells, version: 1, kept }
    }

    /// Returns the version of the document and its table.
    pub(super) fn finish(self) -> (u64, Vec<Json>) {
        (self.version, self.nodes)
    }

    /// Returns the cell of a value, after adding its parts to the table.
    pub(super) fn cell(&mut self, value: &Value) -> Result<Json> {
        self.cells += 1;
        if self.cells > self.most_cells {
            let message = format!("a value to be stored has more than {} parts", self.most_cells);
            return Err(Error::new(ErrorKind::SizeExceeded, message));
        }
        if let Some(cell) = scalar_cell(value) {
            return Ok(cell);
        }
        if value.depth() > DEEPEST {
            let message = format!("a value to be stored is nested more than {DEEPEST} deep");
            return Err(Error::new(ErrorKind::NestingExceeded, message));
        }
        let key = identity(value);
        if let Some(index) = key.and_then(|key| self.known.get(&key)) {
            return Ok(json!(["r", index]));
        }
        let node = self.node(value)?;
        let index = self.nodes.len();
        self.nodes.push(node);
        if let Some(key) = key {
            self.known.insert(key, index);
            self.kept.push(value.clone());
        }
        Ok(json!(["r", index]))
    }

    fn node(&mut self, value: &Value) -> Result<Json> {
        Ok(match value {
            Value::Vector(items) if items.is_entry() => self.items("e", items.iter())?,
            Value::Vector(items) if items.is_queue() => self.new_kind("queue", items.iter())?,
            Value::Vector(items) => self.items("v", items.iter())?,
            Value::Set(items) => match items.comparator() {
                None => self.items("set", items.iter())?,
                Some(comparator) => self.new_kind("sset", std::iter::once(comparator).chain(items))?,
            },
            Value::Map(map) => {
                let entries = map.iter().flat_map(|(key, value)| [key, value]);
                match map.comparator() {
                    None if map.is_flexible() => self.items("fm", entries)?,
                    None => self.items("m", entries)?,
                    Some(comparator) => self.new_kind("sm", std::iter::once(comparator).chain(entries))?,
                }
            }
            Value::List(list) if list.is_proper() => self.sequence("l", value)?,
            Value::List(_) | Value::Sequence(_) | Value::Lazy(_) => self.sequence("s", value)?,
            Value::Closure(closure) => self.function(closure)?,
            Value::Exception(exception) => self.exception(exception)?,
            Value::Reduced(inner) => json!(["red", self.cell(inner)?]),
            other => {
                let message = format!("a value of type {} cannot be stored", other.type_name());
                return Err(Error::new(ErrorKind::NotRepresentable, message));
            }
        })
    }

    fn items<'v>(&mut self, letter: &str, items: impl Iterator<Item = &'v Value>) -> Result<Json> {
        let mut node = vec![json!(letter)];
        for item in items {
            node.push(self.cell(item)?);
        }
        Ok(Json::Array(node))
    }

    /// Writes a kind of collection that version 2 of the format added.
    fn new_kind<'v>(&mut self, letter: &str, items: impl Iterator<Item = &'v Value>) -> Result<Json> {
        self.version = 2;
        self.items(letter, items)
    }

    fn sequence(&mut self, letter: &str, value: &Value) -> Result<Json> {
        let mut node = vec![json!(letter)];
        let mut cursor = Cursor::new(value).unwrap_or(Cursor::End);
        loop {
            match cursor.next() {
                CursorStep::Item(item) => node.push(self.cell(&item)?),
                CursorStep::End => return Ok(Json::Array(node)),
                CursorStep::Blocked(_) => {
                    let message = "a sequence that has not been realised cannot be stored";
                    return Err(Error::new(ErrorKind::NotRepresentable, message));
                }
            }
        }
    }

    fn function(&mut self, closure: &Closure) -> Result<Json> {
        let mut captured = Vec::with_capacity(closure.captured().len());
        for value in closure.captured().iter() {
            captured.push(self.cell(value)?);
        }
        function_node(closure, captured)
    }

    fn exception(&mut self, exception: &Exception) -> Result<Json> {
        let data = self.cell(exception.data())?;
        let cause = self.cell(exception.cause())?;
        let message = exception.message().map(|text| text.as_str());
        Ok(json!(["x", exception.kind().name(), exception.class(), message, data, cause]))
    }
}

/// Returns the identity of a compound value: whether it is a function, and its stamp or else its address.
/// `None` for values that are created on each access.
fn identity(value: &Value) -> Option<(bool, u64)> {
    match value {
        Value::Closure(closure) => Some((true, closure.stamp().0)),
        Value::Reduced(_) => None,
        other => other.address().map(|address| (false, address as u64)),
    }
}
