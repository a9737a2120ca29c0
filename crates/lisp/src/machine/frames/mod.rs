//! Library functions that are frames: they call functions, create lazy sequences, or act on the machine.

mod actions;
mod apply;
mod delay;
mod lazy;
mod parallel;
mod reduce;
mod search;
mod sort;

use super::shared::SharedState;
use super::work::Step;
use crate::error::{Error, ErrorKind, Result};
use crate::library::Native;
use crate::value::{Cursor, Value};

pub(crate) const TABLES: &[&[Native]] = &[
    actions::NATIVES,
    delay::NATIVES,
    lazy::NATIVES,
    parallel::NATIVES,
    reduce::NATIVES,
    search::NATIVES,
    sort::NATIVES,
];

/// Returns a cursor at the beginning of a collection argument.
fn cursor(name: &str, value: &Value) -> Result<Cursor> {
    Cursor::new(value).ok_or_else(|| crate::library::not_a_sequence(name, value))
}

/// Calls a library function that is written in the language.
pub(super) fn prelude(shared: &SharedState, name: &str, arguments: Vec<Value>) -> Result<Step> {
    match shared.engine.builtins.get(name) {
        Some(function) => Ok(Step::Become(function.clone(), arguments)),
        None => Err(Error::new(ErrorKind::Internal, format!("the library lacks {name}"))),
    }
}

/// Takes arguments one by one. The arity has already checked their number.
struct ArgumentReader(std::vec::IntoIter<Value>);

impl ArgumentReader {
    fn new(arguments: Vec<Value>) -> Self {
        Self(arguments.into_iter())
    }

    fn take(&mut self) -> Value {
        self.0.next().unwrap_or_default()
    }
}
