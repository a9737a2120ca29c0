//! The changes of a program to a memory, with additional values.
//!
//! A memory after many programs is the first one plus the changes of each program in order. A document of
//! changes contains only what a program defined or set, whatever the size of the memory. Functions in it
//! refer to definitions by name, in the memory that the changes are applied to.

use serde_json::{Value as Json, json};

use super::damaged;
use super::memory::{add_known_names, array, check_version, field, read_names, reader, texts, writer};
use crate::engine::Engine;
use crate::error::Result;
use crate::inputs::Inputs;
use crate::limits::Limits;
use crate::memory::Memory;
use crate::value::{Stamp, Value, identical};

/// Stores the difference between a memory and the one that it came from, with additional values, as a JSON
/// document.
pub fn store_changes(before: &Memory, after: &Memory, values: &[Value], limits: &Limits) -> Result<Json> {
    let mut writer = writer(limits);
    let changes = after.changes_since(before);
    let mut definitions = Vec::new();
    for definition in &changes.defined {
        definitions.push(json!({
            "name": &*definition.name,
            "value": writer.cell(&definition.value)?,
            "doc": definition.doc.as_deref(),
            "returned": definition.returned.as_deref(),
        }));
    }
    let mut atoms = Vec::new();
    for (number, (_, value)) in &after.atoms {
        let is_same = before.atoms.get(number).is_some_and(|(_, old)| identical(old, value));
        if !is_same {
            atoms.push(json!([number, writer.cell(value)?]));
        }
    }
    let dropped: Vec<u64> =
        before.atoms.keys().copied().filter(|number| !after.atoms.contains_key(number)).collect();
    let values: Vec<Json> = values.iter().map(|value| writer.cell(value)).collect::<Result<_>>()?;
    // Names are only ever added, so the new ones are last.
    let names: Vec<&str> =
        after.names.globals.iter().skip(before.names.globals.iter().count()).map(|name| &**name).collect();
    let data: Vec<&str> =
        after.names.data.iter().skip(before.names.data.iter().count()).map(|name| &**name).collect();
    let (version, nodes) = writer.finish();
    let mut document = json!({
        "version": version,
        "nodes": nodes,
        "names": names,
        "data": data,
        "definitions": definitions,
        "forgotten": changes.forgotten.iter().map(|name| &**name).collect::<Vec<_>>(),
        "atoms": atoms,
        "dropped": dropped,
        "next_stamp": after.next_stamp,
        "values": values,
    });
    add_known_names(&mut document, after);
    Ok(document)
}

/// Applies the changes of a document to the memory of the inputs, and returns the additional values.
pub fn restore_changes(document: &Json, engine: &Engine, inputs: &mut Inputs) -> Result<Vec<Value>> {
    check_version(document)?;
    let mut memory = inputs.memory.clone();
    let (forgotten, values) = (texts(document, "forgotten")?, array(document, "values")?);
    let values = apply(document, engine, inputs, &mut memory, &forgotten, values)?;
    for number in array(document, "dropped")? {
        let number = number.as_u64().ok_or_else(|| damaged("not an atom"))?;
        memory.atoms.remove(&number);
    }
    inputs.memory = memory;
    Ok(values)
}

/// Applies the names, definitions and atoms of a document to a memory, and returns the additional values.
pub(super) fn apply(
    document: &Json,
    engine: &Engine,
    inputs: &Inputs,
    memory: &mut Memory,
    forgotten: &[&str],
    values: &[Json],
) -> Result<Vec<Value>> {
    // Names come first: functions refer to definitions that come after them.
    for name in texts(document, "names")? {
        memory.names.globals.number_or_add(name);
    }
    for name in texts(document, "data")? {
        memory.names.data.number_or_add(name);
    }
    read_names(document, memory)?;
    let next_stamp = field(document, "next_stamp")?.as_u64();
    let next_stamp =
        next_stamp.filter(|stamp| !Stamp(*stamp).is_of_branch()).ok_or_else(|| damaged("no next stamp"))?;
    let (mut definitions, mut cells) = (Vec::new(), Vec::new());
    let mut reader = reader(engine, inputs, memory);
    reader.table(field(document, "nodes")?)?;
    for definition in array(document, "definitions")? {
        let name = definition.get("name").and_then(Json::as_str);
        let name = name.ok_or_else(|| damaged("a definition has no name"))?;
        definitions.push((definition, name, reader.cell(definition.get("value").unwrap_or(&Json::Null))?));
    }
    for atom in array(document, "atoms")? {
        let number = atom.get(0).and_then(Json::as_u64).ok_or_else(|| damaged("not an atom"))?;
        cells.push((number, reader.cell(atom.get(1).unwrap_or(&Json::Null))?));
    }
    let values = values.iter().map(|value| reader.cell(value)).collect::<Result<_>>()?;
    forgotten.iter().for_each(|name| memory.forget(name));
    for (definition, name, value) in definitions {
        memory.define_as_stored(definition, name, value);
    }
    for (number, value) in cells {
        memory.restore_atom(number, value);
    }
    memory.next_stamp = memory.next_stamp.max(next_stamp);
    Ok(values)
}
