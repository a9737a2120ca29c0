//! Documents: a single value, or a whole memory.

use std::collections::HashMap;

use serde_json::{Value as Json, json};

use super::changes::{apply, store_changes};
use super::functions::FunctionReader;
use super::read::Reader;
use super::write::Writer;
use super::{VERSION, damaged};
use crate::engine::Engine;
use crate::error::{Error, ErrorKind, Result};
use crate::inputs::Inputs;
use crate::limits::Limits;
use crate::memory::Memory;
use crate::value::Value;

/// The minimum size of a value, so the memory limit bounds the parts of a document.
const BYTES_OF_CELL: usize = 16;

pub(super) fn writer(limits: &Limits) -> Writer {
    Writer::new(limits.memory_bytes / BYTES_OF_CELL)
}

/// Stores a value as a JSON document.
pub fn store_value(value: &Value, limits: &Limits) -> Result<Json> {
    let mut writer = writer(limits);
    let root = writer.cell(value)?;
    let (version, nodes) = writer.finish();
    Ok(json!({"version": version, "nodes": nodes, "root": root}))
}

/// Restores the value of a document. Functions in it are compiled against the inputs; the names they mention
/// and the atoms are added to the memory of the inputs.
pub fn restore_value(document: &Json, engine: &Engine, inputs: &mut Inputs) -> Result<Value> {
    check_version(document)?;
    let mut memory = inputs.memory.clone();
    let mut reader = reader(engine, inputs, &mut memory);
    reader.table(field(document, "nodes")?)?;
    let value = reader.cell(field(document, "root")?)?;
    inputs.memory = memory;
    Ok(value)
}

/// Stores a memory as a JSON document: definitions with their docstrings and order, atoms, and the numbers of
/// names.
pub fn store_memory(memory: &Memory, limits: &Limits) -> Result<Json> {
    let mut document = store_changes(&Memory::new(), memory, &[], limits)?;
    if let Some(fields) = document.as_object_mut() {
        fields.retain(|field, _| !matches!(field.as_str(), "forgotten" | "dropped" | "values"));
    }
    Ok(document)
}

/// Adds the aliases to a document.
pub(super) fn add_known_names(document: &mut Json, memory: &Memory) {
    for (field, known) in [("aliases", &memory.names.aliases), ("referred", &memory.names.referred)] {
        if !known.is_empty() {
            document[field] = known.iter().map(|(name, means)| (name.to_string(), json!(&**means))).collect();
        }
    }
}

/// Reads the aliases of a document.
pub(super) fn read_names(document: &Json, memory: &mut Memory) -> Result<()> {
    let names = &mut memory.names;
    for (field, known) in [("aliases", &mut names.aliases), ("referred", &mut names.referred)] {
        for (name, means) in document.get(field).and_then(Json::as_object).into_iter().flatten() {
            let means = means.as_str().ok_or_else(|| damaged("a name that stands for no name"))?;
            known.insert(name.as_str().into(), means.into());
        }
    }
    Ok(())
}

/// Restores the memory of a document. Functions in it are compiled against the data and tools of the inputs.
pub fn restore_memory(document: &Json, engine: &Engine, inputs: &Inputs) -> Result<Memory> {
    check_version(document)?;
    let mut memory = Memory::new();
    apply(document, engine, inputs, &mut memory, &[], &[])?;
    Ok(memory)
}

impl Memory {
    /// Defines a name from its stored definition.
    pub(super) fn define_as_stored(&mut self, definition: &Json, name: &str, value: Value) {
        let text = |key: &str| definition.get(key).and_then(Json::as_str);
        self.define(name, value, text("doc"));
        let number = self.names.globals.number_or_add(name) as usize;
        if let Some(Some(slot)) = self.slots.get_mut(number) {
            slot.returned = text("returned").map(Into::into);
        }
    }
}

pub(super) fn reader<'a>(engine: &'a Engine, inputs: &'a Inputs, memory: &'a mut Memory) -> Reader<'a> {
    let functions = FunctionReader {
        builtins: &engine.inner().builtins,
        library: &engine.inner().library_code,
        data: &inputs.data,
        tools: &inputs.tools,
        compiled: HashMap::new(),
    };
    Reader::new(&inputs.limits, memory, functions)
}

pub(super) fn check_version(document: &Json) -> Result<()> {
    match document.get("version").and_then(Json::as_u64) {
        Some(1..=VERSION) => Ok(()),
        Some(version) => Err(Error::new(
            ErrorKind::InvalidStored,
            format!("a stored value is of version {version}, this program reads versions up to {VERSION}"),
        )),
        None => Err(damaged("it has no version")),
    }
}

pub(super) fn field<'a>(document: &'a Json, name: &str) -> Result<&'a Json> {
    document.get(name).ok_or_else(|| damaged(&format!("it has no {name:?}")))
}

pub(super) fn array<'a>(document: &'a Json, name: &str) -> Result<&'a [Json]> {
    field(document, name)?
        .as_array()
        .map(Vec::as_slice)
        .ok_or_else(|| damaged(&format!("{name:?} is not an array")))
}

pub(super) fn texts<'a>(document: &'a Json, name: &str) -> Result<Vec<&'a str>> {
    let texts: Option<Vec<&str>> = array(document, name)?.iter().map(Json::as_str).collect();
    texts.ok_or_else(|| damaged(&format!("{name:?} holds something that is not text")))
}
