//! The outcome of a run.

use std::collections::HashSet;
use std::sync::Arc;

use super::request::Request;
use super::work::Signal;
use crate::error::Error;
use crate::memory::{Definition, Memory};
use crate::value::{Cursor, CursorStep, Value};

/// The reason why a machine stopped.
pub enum MachineOutcome {
    /// The program is finished.
    Finished(Box<ProgramResult>),
    /// Every branch of the program waits for the host. The requests may be answered in any order.
    Suspended(Vec<Request>),
}

/// The result and side effects of a finished program.
pub struct ProgramResult {
    /// The value, or the error. The argument of `return` or `fail` is a value.
    pub result: Result<Value, Error>,
    /// The signal if the program ended itself with `return` or `fail`.
    pub signal: Option<Signal>,
    /// The printed lines. What one call prints is one entry, also if it has line breaks.
    pub prints: Vec<String>,
    /// The memory after the program. If the program failed, it is the memory before it.
    pub memory: Memory,
    /// The names that it defined, each once, in the order of their first definitions; empty if the program
    /// failed.
    pub defined: Vec<Arc<str>>,
    /// The total fuel, including that of all branches.
    pub fuel_used: u64,
    /// The number of tool calls.
    pub tool_calls: usize,
}

/// Returns the names of definitions by their numbers, each once, in the order of their first definitions.
pub(super) fn names_of(numbers: &[u32], memory: &Memory) -> Vec<Arc<str>> {
    let slots = numbers.iter().filter_map(|number| memory.slots.get(*number as usize));
    let mut definitions: Vec<&Definition> = slots.flatten().collect();
    definitions.sort_unstable_by_key(|definition| definition.order);
    definitions.dedup_by_key(|definition| definition.order);
    definitions.into_iter().map(|definition| definition.name.clone()).collect()
}

/// Records the type of each function's last result.
pub(super) fn note_returned(memory: &mut Memory) {
    let observed: Vec<(usize, &'static str)> = memory
        .slots
        .iter()
        .enumerate()
        .filter_map(|(number, slot)| match slot {
            Some(Definition { value: Value::Closure(closure), returned, .. }) => closure
                .returned()
                .filter(|observed| returned.as_deref() != Some(observed))
                .map(|observed| (number, observed)),
            _ => None,
        })
        .collect();
    for (number, observed) in observed {
        if let Some(Some(definition)) = memory.slots.get_mut(number) {
            definition.returned = Some(observed.into());
        }
    }
}

/// Drops the cells of atoms that neither a definition nor the result reaches.
pub(super) fn keep_reachable_atoms(memory: &mut Memory, result: Option<&Value>) {
    if memory.atoms.is_empty() {
        return;
    }
    let mut kept = HashSet::new();
    // Shared parts are visited once: unfolded they may be too many to walk.
    let mut seen = HashSet::new();
    let mut pending: Vec<Value> =
        memory.slots.iter().flatten().map(|definition| definition.value.clone()).collect();
    pending.extend(result.cloned());
    while let Some(value) = pending.pop() {
        if value.address().is_some_and(|address| !seen.insert(address)) {
            continue;
        }
        match &value {
            Value::Atom(atom) => {
                if kept.insert(atom.number())
                    && let Some((_, value)) = memory.atoms.get(&atom.number())
                {
                    pending.push(value.clone());
                }
            }
            Value::Closure(closure) => pending.extend(closure.captured().iter().cloned()),
            Value::Exception(exception) => {
                pending.extend([exception.data().clone(), exception.cause().clone()])
            }
            Value::Reduced(inner) => pending.push((**inner).clone()),
            Value::String(_) => {}
            // The entries that a cursor returns are temporary, so their addresses may be reused by later
            // values.
            Value::Map(map) => {
                let parts = map.iter().flat_map(|(key, value)| [key, value]);
                pending.extend(parts.filter(|part| may_lead_to_atoms(part)).cloned());
            }
            other => {
                let Some(mut cursor) = Cursor::new(other) else { continue };
                while let CursorStep::Item(item) = cursor.next() {
                    if may_lead_to_atoms(&item) {
                        pending.push(item);
                    }
                }
            }
        }
    }
    let dead: Vec<u64> = memory.atoms.keys().filter(|number| !kept.contains(number)).copied().collect();
    for number in dead {
        memory.atoms.remove(&number);
    }
}

fn may_lead_to_atoms(value: &Value) -> bool {
    value.depth() > 0 || matches!(value, Value::Atom(_))
}
