//! The tests of all stores.

mod memory;
