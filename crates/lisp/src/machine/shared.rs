//! The state that all branches of a program share: inputs, memory, meter.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use super::meter::Meter;
use crate::engine::EngineInner;
use crate::error::{Error, ErrorKind, Result, Span};
use crate::inputs::Tools;
use crate::limits::Limits;
use crate::memory::Memory;
use crate::value::{LazyCell, Map, Symbol, Thunk, Value};

pub(crate) struct SharedState {
    pub(crate) engine: Arc<EngineInner>,
    pub(crate) limits: Limits,
    pub(crate) meter: Meter,
    /// The memory before the program.
    pub(crate) given: Memory,
    pub(crate) memory: Memory,
    /// Numbers of the definitions that this program made.
    pub(crate) defined: Vec<u32>,
    /// Atoms that this program created or changed.
    pub(crate) touched: Vec<u64>,
    /// The functions that the program watches an atom with, by the number of the atom and their key. They
    /// last as long as the program.
    pub(crate) watches: HashMap<u64, Map>,
    pub(crate) data: Map,
    /// Data items by number, filled on first use.
    pub(crate) data_values: Vec<Option<Value>>,
    pub(crate) tools: Tools,
    pub(crate) history: Vec<Value>,
    pub(crate) journal: Map,
    pub(crate) now: i64,
    pub(crate) tool_calls: usize,
    /// Cells whose function might read a definition or an atom that leads back to the cell.
    pub(crate) suspects: Vec<Weak<LazyCell>>,
    /// The number of suspects at which dropped ones are removed from the list.
    pub(crate) most_suspects: usize,
    /// The text of the program.
    pub(crate) source: Arc<str>,
    /// The places of its definitions, by number.
    pub(crate) places: Arc<[(u32, Span)]>,
}

impl SharedState {
    /// Creates a lazy sequence.
    pub(crate) fn cell(&mut self, thunk: Thunk, creator: u32) -> Value {
        self.meter.note(LazyCell::BYTES);
        let suspect = thunk.function().is_some_and(|function| !super::thunks::is_pure(function));
        let cell = LazyCell::new(thunk, creator);
        if suspect {
            if self.suspects.len() >= self.most_suspects {
                self.suspects.retain(|cell| cell.strong_count() > 0);
                self.most_suspects = (2 * self.suspects.len()).max(1024);
            }
            self.suspects.push(Arc::downgrade(&cell));
        }
        Value::Lazy(cell)
    }

    /// A data item by its number.
    pub(crate) fn data(&mut self, number: u32) -> Value {
        let index = number as usize;
        if let Some(Some(value)) = self.data_values.get(index) {
            return value.clone();
        }
        let name = self.memory.names.data.name(number).cloned().unwrap_or_else(|| "".into());
        let value = match &*name {
            "*1" => self.result_before(1),
            "*2" => self.result_before(2),
            "*3" => self.result_before(3),
            name => data_named(&self.data, name).cloned().unwrap_or_default(),
        };
        if self.data_values.len() <= index {
            self.data_values.resize(index + 1, None);
        }
        self.data_values[index] = Some(value.clone());
        value
    }

    fn result_before(&self, back: usize) -> Value {
        self.history.len().checked_sub(back).and_then(|at| self.history.get(at)).cloned().unwrap_or_default()
    }

    /// Returns the value of a bare name with a definition, by its number. Until it is defined, the name has
    /// the meaning that it would have without the definition.
    #[inline]
    pub(crate) fn global(&self, number: u32) -> Result<Value> {
        match self.memory.slots.get(number as usize) {
            Some(Some(definition)) => Ok(definition.value.clone()),
            _ => self.fallback(number),
        }
    }

    /// Returns the value of a definition by its number, for names written with `user/`.
    pub(crate) fn definition(&self, number: u32) -> Result<Value> {
        match self.memory.slots.get(number as usize) {
            Some(Some(definition)) => Ok(definition.value.clone()),
            _ => Err(undefined(&self.global_name(number))),
        }
    }

    /// Returns whether the definition with this number exists.
    pub(crate) fn is_defined(&self, number: u32) -> bool {
        self.memory.slots.get(number as usize).is_some_and(Option::is_some)
    }

    #[cold]
    fn fallback(&self, number: u32) -> Result<Value> {
        let name = self.global_name(number);
        if self.engine.builtins.bare(&name).is_some() {
            return Err(undefined(&name));
        }
        match (self.tools.find(&name), data_named(&self.data, &name)) {
            (Some(tool), None) => Ok(Value::Tool(Symbol::new(tool))),
            (None, Some(value)) => Ok(value.clone()),
            (Some(tool), Some(_)) => Err(Tools::ambiguous(&name, tool)),
            (None, None) => Err(undefined(&name)),
        }
    }

    pub(crate) fn global_name(&self, number: u32) -> Arc<str> {
        self.memory.names.globals.name(number).cloned().unwrap_or_else(|| "".into())
    }

    /// Returns the value of a definition by name, for vars.
    pub(crate) fn global_named(&self, name: &str) -> Result<Value> {
        match self.memory.names.globals.number(name) {
            Some(number) => self.definition(number),
            None => Err(Error::new(ErrorKind::UnboundVar, format!("`{name}` is not defined"))),
        }
    }

    /// Counts a tool call.
    pub(crate) fn count_tool_call(&mut self) -> Result<()> {
        self.tool_calls += 1;
        if self.tool_calls > self.limits.tool_calls {
            let limit = self.limits.tool_calls;
            let message = format!("the program called tools more than {limit} times");
            return Err(Error::new(ErrorKind::ToolCallLimitExceeded, message));
        }
        Ok(())
    }
}

fn data_named<'d>(data: &'d Map, name: &str) -> Option<&'d Value> {
    data.get_exact(&Value::keyword(name)).or_else(|| data.get_exact(&Value::string(name)))
}

fn undefined(name: &str) -> Error {
    Error::new(ErrorKind::UnboundVar, format!("`{name}` has no value yet"))
}

impl Drop for SharedState {
    /// Breaks cycles: nothing the finished program leaves is lazy, so its cells may be emptied.
    fn drop(&mut self) {
        for cell in self.suspects.drain(..).filter_map(|cell| cell.upgrade()) {
            cell.empty();
        }
    }
}
