//! Values, functions and memories as JSON, to outlive the process.
//!
//! A stored document is a flat table of compound values that refer to each other by index, children before
//! parents. So shared parts stay shared, a value that contains itself twice at every level takes no more
//! space than in memory, and the JSON has only a few levels of nesting. A function is stored as its source
//! text and its captured values, and is compiled again when it is restored; a library function is stored as
//! its index. Every document has the version of this format.
//!
//! A lazy sequence that has not been realised cannot be stored (a program realises its result and memory at
//! its end). Input is not trusted: an index that does not point back, a size or depth beyond the limits, a
//! text that does not compile, or a newer version is an error and never a panic.

mod cells;
mod changes;
mod functions;
mod memory;
mod read;
mod write;

pub use changes::{restore_changes, store_changes};
pub use memory::{restore_memory, restore_value, store_memory, store_value};

use crate::error::{Error, ErrorKind};

/// The version of the format. A change of the format raises it, and older versions stay readable. A document
/// is of the lowest version that has all of its kinds, so older programs read what they can.
pub(crate) const VERSION: u64 = 2;

fn damaged(what: &str) -> Error {
    Error::new(ErrorKind::InvalidStored, format!("a stored value is damaged: {what}"))
}
