//! The tests of all stores.

mod broken;
mod memory;
mod sqlite;
