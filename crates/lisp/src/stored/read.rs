//! Reads a table of stored values.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value as Json;

use super::cells::scalar_of;
use super::damaged;
use super::functions::FunctionReader;
use crate::error::{Error, ErrorKind, Result};
use crate::library::{Native, THROWABLE};
use crate::limits::Limits;
use crate::memory::Memory;
use crate::value::{Exception, List, Map, Sequence, Set, Text, Value, Vector};

/// Reads the compound values of a document, in order.
pub(super) struct Reader<'a> {
    pub(super) limits: &'a Limits,
    /// The memory that is being rebuilt: names and atoms.
    pub(super) memory: &'a mut Memory,
    pub(super) functions: FunctionReader<'a>,
    natives: HashMap<&'static str, &'static Native>,
    values: Vec<Value>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(limits: &'a Limits, memory: &'a mut Memory, functions: FunctionReader<'a>) -> Self {
        let natives = crate::library::tables().map(|native| (native.name, native)).collect();
        Self { limits, memory, functions, natives, values: Vec::new() }
    }

    /// Reads the table. Each value refers only to earlier ones, so there is no cycle and no recursion.
    pub(super) fn table(&mut self, nodes: &Json) -> Result<()> {
        let nodes = nodes.as_array().ok_or_else(|| damaged("there is no table"))?;
        for node in nodes {
            let value = self.node(node)?;
            self.limits.check_depth(value.depth())?;
            self.values.push(value);
        }
        Ok(())
    }

    /// Returns the value of a cell.
    pub(super) fn cell(&mut self, cell: &Json) -> Result<Value> {
        match cell {
            Json::Null => Ok(Value::Nil),
            Json::Bool(value) => Ok(Value::Boolean(*value)),
            Json::Number(number) => {
                number.as_i64().map(Value::Integer).ok_or_else(|| damaged("not a 64 bit integer"))
            }
            Json::String(text) => {
                self.limits.check_string(text.len())?;
                Ok(Value::string(text.as_str()))
            }
            Json::Array(parts) => {
                let (letter, parts) = split(parts)?;
                match letter {
                    "r" => {
                        let index = parts
                            .first()
                            .and_then(Json::as_u64)
                            .and_then(|index| usize::try_from(index).ok());
                        let value = index.and_then(|index| self.values.get(index));
                        value
                            .cloned()
                            .ok_or_else(|| damaged("a reference to a value that does not come before it"))
                    }
                    "native" => {
                        let name = parts.first().and_then(Json::as_str).unwrap_or_default();
                        match self.natives.get(name) {
                            Some(native) => Ok(Value::Native(native)),
                            None => Err(Error::new(
                                ErrorKind::InvalidStored,
                                format!(
                                    "a stored value refers to the function `{name}`, which does not exist"
                                ),
                            )),
                        }
                    }
                    "atom" => {
                        let number =
                            parts.first().and_then(Json::as_u64).ok_or_else(|| damaged("not an atom"))?;
                        // Its value comes later; until then the atom exists and is empty.
                        let atom = self.memory.atoms.get(&number).map(|(atom, _)| atom.clone());
                        Ok(Value::Atom(atom.unwrap_or_else(|| self.memory.restore_atom(number, Value::Nil))))
                    }
                    letter => scalar_of(letter, parts, self.limits)?
                        .ok_or_else(|| damaged("a scalar of an unknown kind")),
                }
            }
            Json::Object(_) => Err(damaged("an object in the place of a value")),
        }
    }

    fn cells(&mut self, parts: &[Json]) -> Result<Vec<Value>> {
        self.limits.check_collection(parts.len())?;
        parts.iter().map(|part| self.cell(part)).collect()
    }

    fn node(&mut self, node: &Json) -> Result<Value> {
        let (letter, parts) =
            split(node.as_array().ok_or_else(|| damaged("a compound value is not an array"))?)?;
        Ok(match letter {
            "v" => Value::vector(self.cells(parts)?),
            "e" => match <[Value; 2]>::try_from(self.cells(parts)?) {
                Ok([key, value]) => Value::Vector(Vector::entry(key, value)),
                Err(_) => return Err(damaged("an entry that is not of two")),
            },
            "queue" => Value::Vector(Vector::queue(self.cells(parts)?)),
            "l" => Value::List(List::from(self.cells(parts)?)),
            "s" => Sequence::realised(self.cells(parts)?),
            "set" => Value::Set(self.cells(parts)?.into_iter().collect::<Set>()),
            "m" | "fm" => {
                let map: Map = self.pairs(parts)?.into_iter().collect();
                Value::Map(if letter == "fm" { map.flexible() } else { map })
            }
            // Collections with a comparator, which is first.
            "sset" | "sm" => {
                let (first, rest) =
                    parts.split_first().ok_or_else(|| damaged("an order without a comparator"))?;
                let comparator = Some(self.cell(first)?);
                if letter == "sm" {
                    Value::Map(Map::ordered(comparator, self.pairs(rest)?))
                } else {
                    Value::Set(Set::ordered(comparator, self.cells(rest)?))
                }
            }
            "red" => Value::Reduced(Arc::new(self.cell(parts.first().unwrap_or(&Json::Null))?)),
            "x" => self.exception(parts)?,
            "fn" => {
                let description = parts.first().ok_or_else(|| damaged("a function without a description"))?;
                let captured = self.cells(parts.get(1..).unwrap_or(&[]))?;
                Value::Closure(Arc::new(self.functions.closure(description, captured, self.memory)?))
            }
            _ => return Err(damaged("a compound value of an unknown kind")),
        })
    }

    fn pairs(&mut self, parts: &[Json]) -> Result<Vec<(Value, Value)>> {
        if !parts.len().is_multiple_of(2) {
            return Err(damaged("a map with a key and no value"));
        }
        let mut cells = self.cells(parts)?.into_iter();
        Ok(std::iter::from_fn(|| Some((cells.next()?, cells.next()?))).collect())
    }

    fn exception(&mut self, parts: &[Json]) -> Result<Value> {
        let [kind, class, message, data, cause] = parts else { return Err(damaged("an exception")) };
        let kind = kind
            .as_str()
            .and_then(ErrorKind::from_name)
            .ok_or_else(|| damaged("an error of an unknown kind"))?;
        let class = class_name(class.as_str().unwrap_or_default());
        let text = message.as_str();
        let message = text.map(Text::new);
        let (data, cause) = (self.cell(data)?, self.cell(cause)?);
        Ok(Value::Exception(Arc::new(match kind {
            ErrorKind::Thrown if class == INFO => Exception::info(message, data, cause),
            ErrorKind::Thrown => Exception::plain(class, message, cause),
            kind => Exception::caught(Error::new(kind, text.unwrap_or_default()), class),
        })))
    }
}

const INFO: &str = "clojure.lang.ExceptionInfo";

/// Returns the class of a stored exception; an unknown class becomes a plain exception.
fn class_name(stored: &str) -> &'static str {
    let others = ["java.lang.StringIndexOutOfBoundsException", "clojure.lang.ArityException", INFO];
    let mut known = THROWABLE.iter().copied().chain(others);
    known.find(|known| *known == stored).unwrap_or("java.lang.Exception")
}

/// Returns the letter and the rest of an array.
fn split(parts: &[Json]) -> Result<(&str, &[Json])> {
    match parts {
        [Json::String(letter), rest @ ..] => Ok((letter, rest)),
        _ => Err(damaged("an array that does not begin with its kind")),
    }
}
