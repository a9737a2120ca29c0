//! Library functions that are frames: they call functions, make lazy sequences, or act on the machine.

mod actions;
mod lazy;
mod parallel;
mod reduce;
mod search;
mod sort;

use super::work::{Host, Step};
use crate::error::{Error, ErrorKind, Result};
use crate::library::Native;
use crate::value::{Cursor, Value};

/// All tables of this module.
pub(crate) const TABLES: &[&[Native]] =
    &[actions::NATIVES, lazy::NATIVES, parallel::NATIVES, reduce::NATIVES, search::NATIVES, sort::NATIVES];

/// A cursor at the beginning of an argument that must be a collection.
fn cursor(name: &str, value: &Value) -> Result<Cursor> {
    Cursor::new(value).ok_or_else(|| crate::library::type_error(name, "a sequence", value))
}

/// Calls a function of the library that is written in the language.
fn prelude(host: &Host<'_>, name: &str, arguments: Vec<Value>) -> Result<Step> {
    match host.shared.engine.builtins.get(name) {
        Some(function) => Ok(Step::Become(function.clone(), arguments)),
        None => Err(Error::new(ErrorKind::Internal, format!("the library lacks {name}"))),
    }
}

/// Takes arguments off a list whose length the arity has made sure of.
struct ArgumentReader(std::vec::IntoIter<Value>);

impl ArgumentReader {
    fn new(arguments: Vec<Value>) -> Self {
        Self(arguments.into_iter())
    }

    fn take(&mut self) -> Value {
        self.0.next().unwrap_or_default()
    }
}
