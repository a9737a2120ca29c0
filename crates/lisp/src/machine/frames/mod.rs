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

/// Takes the first arguments. The arity has already checked their number; one that is left out is `nil`.
fn take<const N: usize>(arguments: Vec<Value>) -> [Value; N] {
    let mut arguments = arguments.into_iter();
    std::array::from_fn(|_| arguments.next().unwrap_or_default())
}

/// Takes the first argument.
fn take_first(arguments: Vec<Value>) -> Value {
    arguments.into_iter().next().unwrap_or_default()
}
