//! Values, functions and memories as JSON, to outlive the process.
//!
//! A stored document is a flat table of compound values that refer to each other by index, children before parents. So
//! what was shared stays shared, a value that holds itself twice at every level takes no more room than it does in
//! memory, and the JSON is never nested deeper than a handful of levels. A function is stored as the text it was
//! compiled from and the values it captured, and is compiled again when it comes back; a function of the library as its
//! place there. Every document carries the version of this format.
//!
//! What cannot be stored: a lazy sequence that has not been realised (a program realises what it leaves behind). What
//! comes in is not trusted: an index that does not point back, a size or depth beyond the limits, a text that does not
//! compile, a version from the future, each is an error and never a panic.

mod cells;
mod changes;
mod functions;
mod memory;
mod read;
mod write;

pub use changes::{restore_changes, store_changes};
pub use memory::{restore_memory, restore_value, store_memory, store_value};

use crate::error::{Error, ErrorKind};

/// The version of the format. A change of the format gets a new number and keeps reading the old ones.
pub(crate) const VERSION: u64 = 1;

fn damaged(what: &str) -> Error {
    Error::new(ErrorKind::InvalidStored, format!("a stored value is damaged: {what}"))
}
